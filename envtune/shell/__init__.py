"""Read shell scripts without running them: what a launch script exports, as far as its text tells."""

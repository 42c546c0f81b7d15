"""A command and its output, passed through unchanged, and how it ended."""

"""The training job that is judged: its interpreter, its variables, its launch script and its other hosts."""

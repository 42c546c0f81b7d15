"""Kernel parameters: the files that set them, and how they are set."""

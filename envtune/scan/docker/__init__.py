"""Dockerfiles: their instructions, and what the image that they build gives its process."""

"""Dockerfiles: their instructions, and the environment of the process in the built image."""

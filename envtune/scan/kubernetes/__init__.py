"""Kubernetes objects: YAML with line numbers, and what the containers of a pod get."""

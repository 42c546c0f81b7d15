"""Hooks of schedulers: what is known about a host to a node's state, in Slurm and in Kubernetes.

A hook never holds up a node by a fault of its own: its work is done by processes that are ended in time (limits.py),
and only what they have said has an effect. What a prolog imports is little, because it runs before every job.
"""

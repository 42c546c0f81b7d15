"""Hooks of schedulers: set a node's state in Slurm and in Kubernetes from what is known about the host.

A hook never blocks a node because of its own failure: its work is done by processes with a time limit (limits.py), and
only what they have reported has an effect. A prolog imports little, because it runs before every job.
"""

"""Recorded hosts: reading and validating snapshots, and a host that reads from one."""

"""Staged fixes: plans for many hosts, rolled out in stages that stop on failure, and undone."""

"""Staged fixes: plans of many hosts, rolled out in stages that stop where it goes wrong, and taken back."""

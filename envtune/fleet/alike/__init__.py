"""Reuse results that a host has in common with earlier ones: `check.py`, based on what `reads.py` noted."""

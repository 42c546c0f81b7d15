"""What a host has in common with earlier ones is taken over: `check.py`, by what `reads.py` noted."""

"""Outputs of profilers to where the time of a training step goes, and what on the host can explain it."""

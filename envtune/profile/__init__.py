"""From profiler output to where the time of a training step goes, and what on the host can explain it."""

"""Programs that the job's Python runs: standard library, Python 3.6, and what they measure."""

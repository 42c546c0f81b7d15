"""One module for each kind of file that a profiler writes: its bytes to numbers, without a verdict."""

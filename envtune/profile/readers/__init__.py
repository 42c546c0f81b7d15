"""One module for each kind of profiler file: from bytes to numbers, without a verdict."""

"""A running job's processes, sampled from outside: what its main threads and workers wait for. Needs no profiler."""

"""Processes that use NPUs: residual ones, memory, profilers, and how they are ended."""

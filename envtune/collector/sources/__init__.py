"""What is recorded, one module per family of checks: the paths and commands they read, and how further ones are found.

A new check adds what it reads to the table of its family, one line each; tests/collector/test_collector_coverage.py
reports missing ones. `*`, `?` and `[...]` do not cross a slash; a final `**` is everything below.
"""

"""Read a host: its files, the output of commands, its processes and sockets. Judges nothing and changes nothing.

Standard library only, Python 3.6 syntax, imports nothing of envtune outside this package: `envtune collector` prints it
as one file (envtune/assemble.py) that records a host on which nothing is installed. `LocalHost` uses the same functions
for a live audit, so that the two cannot diverge. Nothing is imported here, so that importing a module loads only what
it needs.
"""

"""What the executor uses of the host besides files: signals, the host's lock, the caller, the system log, packages."""

"""What the executor needs of the host besides files: signals, the lock of the host, who calls, its log, packages."""

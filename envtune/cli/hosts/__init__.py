"""What the command line does with several hosts: `check` over recorded ones, and `diff` of two."""

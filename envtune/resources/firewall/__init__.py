"""The host's firewall: what it admits, and how to open ports."""

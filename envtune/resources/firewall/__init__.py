"""The host's firewall: what it lets in, and how ports are opened."""

"""Services of systemd."""

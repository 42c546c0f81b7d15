"""What iptables-save prints."""

"""The output of iptables-save."""

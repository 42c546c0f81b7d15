"""Many hosts: collect a snapshot of each over ssh, check them here, keep what was found, answer questions."""

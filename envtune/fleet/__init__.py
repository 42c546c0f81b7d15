"""Many hosts: collect a snapshot of each over ssh, check them here, store the results, answer queries."""

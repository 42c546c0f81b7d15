"""Compare reports of several hosts: what they have in common, which hosts differ, and in what. Reads nothing itself."""

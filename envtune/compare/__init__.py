"""Reports of several hosts to what they have in common, which hosts differ, and in what. Reads nothing itself."""

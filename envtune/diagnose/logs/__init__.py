"""Log files and streams: which there are, whose rank and host, their lines and blocks."""

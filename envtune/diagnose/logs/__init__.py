"""Log files and streams: finding them, their ranks and hosts, their lines and blocks."""

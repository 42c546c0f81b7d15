"""Whether a fix makes a job faster: the same work measured with and without its changes, in turn."""

"""Whether a fix makes a job faster: the same work measured alternately with and without its changes."""

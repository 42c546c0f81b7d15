"""The job's environment variables: what they are, should be, and how they are set."""

"""Programs that start the job: which they are, and what they do to its environment."""

"""Files of the job: dump configurations, what debugging left, and its data set."""

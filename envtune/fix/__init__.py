"""From findings to a plan, consent, the executor, and a second run of the same checks."""

"""Findings to a plan, consent, the executor, and the same checks again."""

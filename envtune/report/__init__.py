"""Render reports, plans and diagnoses as text for a person or as JSON for a program."""

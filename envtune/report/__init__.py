"""Reports: a `Report` as text for a person or as JSON for a program."""

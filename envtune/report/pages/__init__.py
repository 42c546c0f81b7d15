"""Pages about what the catalog holds: checks, FAQ entries and playbooks, and what they are written with."""

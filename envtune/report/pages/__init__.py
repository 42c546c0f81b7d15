"""Pages about what the catalogue holds: checks, FAQ entries and playbooks, and what they are written with."""

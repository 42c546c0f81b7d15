"""What audits found, over time: a change log in SQLite. `schema.py` documents the tables."""

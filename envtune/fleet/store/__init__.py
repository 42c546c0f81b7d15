"""What audits found, over time: a change log in SQLite. `schema.py` says what the tables mean."""

"""A log -> the known error, the lines that prove it, and what this host says to it.

sources.py finds and reads logs, scan.py finds the signatures of the catalogue in them, resolve.py decides which of them is
the cause, answer.py asks the confirming checks.
"""

"""A log -> the known error, the lines that prove it, and what this host says to it.

sources.py finds logs, blocks.py reads them, scan.py finds the signatures of the catalogue, resolve.py decides which of
them is the cause, answer.py asks the confirming checks.
"""

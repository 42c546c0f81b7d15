"""Diagnose a log: find the known error, the lines that prove it, and what this host says about it.

logs/files.py finds logs, logs/blocks.py reads them, scan.py finds the signatures of the catalogue, rank.py decides
which of them is the cause, diagnosis.py runs the confirming checks.
"""

"""Recorded hosts: reading, checking and answering from a snapshot."""

"""Comparisons of several hosts, and of two, as text and JSON."""

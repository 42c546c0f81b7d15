"""Distributions of the job's Python, and how they are installed."""

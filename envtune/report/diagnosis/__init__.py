"""A diagnosis as text, JSON and Markdown."""

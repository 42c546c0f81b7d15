"""The report that fits a screen, in parts: what is said of a problem, what repairs it, and which gets how much room."""

"""What drops the lines that no signature can match, before any expression is tried."""

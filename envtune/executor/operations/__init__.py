"""The kinds of operations, one module each."""

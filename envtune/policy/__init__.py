"""A site's policy: what it expects of its hosts, what it accepts for a time, and which checks it runs.

`read` parses a file into a `Policy`, `apply` changes the checks of a catalog by it; `audit` does the rest. `find`
determines which file is used.
"""

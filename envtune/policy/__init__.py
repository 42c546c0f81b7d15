"""A site's policy: what it expects of its hosts, what it accepts for a time, and which checks it runs.

`read` makes a `Policy` of a file, `apply` changes the checks of a catalogue by it; `audit` does the rest. `find` says
which file is used.
"""

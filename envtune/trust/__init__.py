"""Which program is started, with which environment: the one place for reading and for writing.

As root nothing is run that another user can change. Standard library only, Python 3.6 syntax and relative imports,
because the collector and the executor bring these modules along in the one file each of them travels as.
"""

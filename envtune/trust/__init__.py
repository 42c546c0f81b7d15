"""Which program is started, with which environment: shared by reading and writing.

As root nothing is run that another user can change. Standard library only, Python 3.6 syntax and relative imports,
because these modules become part of the single files of the collector and the executor.
"""

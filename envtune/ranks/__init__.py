"""Find the process of a distributed job that failed first, from what all processes logged.

Lines become notes (lines.py says which, identity.py who printed them), notes a table of processes (table.py), waits a
graph of who waited for whom (waits.py), and the graph an answer (root.py): the root, the set of those that never came,
or the candidates if undecided. Clocks of hosts are compared only if pairs of events give their difference (clocks.py).
Pure: the caller reads the logs.
"""

from __future__ import annotations

"""One package per technology, with what it reads (probes, facts) and how it is repaired (actions)."""

"""`envtune policy`, and the policy under which the other commands work."""

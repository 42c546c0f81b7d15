"""Verbs of the command line, a module each; older ones are in envtune.cli itself."""

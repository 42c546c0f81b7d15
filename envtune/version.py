"""The version of envtune, in a module of its own: what prints it needs nothing else of the package."""

__version__ = "0.1.0"

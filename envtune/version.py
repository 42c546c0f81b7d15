"""The version of envtune, in a separate module: printing it needs nothing else of the package."""

__version__ = "0.1.0"

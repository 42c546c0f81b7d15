"""envtune: makes an Ascend NPU training host ready and keeps it so."""

__version__ = "0.1.0"

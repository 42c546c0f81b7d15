"""Requests of `envtune fleet fix` to the executor on a host."""

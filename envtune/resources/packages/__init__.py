"""Packages of the system's package manager."""

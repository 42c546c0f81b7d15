"""The forms in which a report can be had beside text and JSON: one module for each, from one view of the report."""

from __future__ import annotations

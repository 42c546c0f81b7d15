"""Render what a store of many hosts answers: text, JSON, CSV and HTML."""

"""Checks the work behind an answer."""

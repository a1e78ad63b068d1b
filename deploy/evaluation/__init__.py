"""Measures the desk on questions whose answers are known."""

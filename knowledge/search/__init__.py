"""Finds chunks on four levels and combines them into one score."""

"""Finds chunks: four levels, one score."""

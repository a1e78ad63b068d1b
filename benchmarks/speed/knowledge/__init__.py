"""Measures the search at several sizes of the index."""

"""Knows about all documents what a search needs, without a copy of them."""

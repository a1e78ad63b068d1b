"""Learns from the documents what the cosines of an embedding model mean."""

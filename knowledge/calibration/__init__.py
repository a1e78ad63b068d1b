"""Learns the scale of an embedding model's cosines from the documents."""

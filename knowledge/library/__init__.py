"""Reads whole documents, finds them by name, and compares them."""

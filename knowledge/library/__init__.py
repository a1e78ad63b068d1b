"""Reads whole documents, finds them by their names, and compares them."""

"""Finds the signs of an injection, also of one in disguise."""

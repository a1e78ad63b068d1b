"""Follows an index that another one replaces."""

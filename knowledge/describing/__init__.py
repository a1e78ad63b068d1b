"""Describing pages with a model while other pages are read."""

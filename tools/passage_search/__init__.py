"""Passages as results of tools, and the searches that several tools share."""

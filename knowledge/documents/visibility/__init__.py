"""Finds the parts of a page's HTML that a reader does not see."""

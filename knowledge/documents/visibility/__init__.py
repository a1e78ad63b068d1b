"""Tells which parts of a page's HTML a reader does not see."""

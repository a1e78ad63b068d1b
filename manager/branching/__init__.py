"""Branches of a message: what begins, what returns, and how results are merged."""

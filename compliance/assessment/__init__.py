"""Gaps, risks and the kind of a document."""

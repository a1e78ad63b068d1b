"""Audits of citations: whether a source exists and says what cites it."""

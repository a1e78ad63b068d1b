"""Verdicts: whether a document fulfils a requirement, with the evidence."""

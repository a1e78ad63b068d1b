"""Finds the sentences, items, rows and steps of sources that answer a question, without a model."""

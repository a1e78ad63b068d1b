"""Detects the language of a text from scripts, n-grams and the language of the conversation."""

"""Detects the language of a text, based on scripts, n-grams, and the language of the
conversation.
"""

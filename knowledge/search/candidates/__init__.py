"""Finds the chunks that a question is compared with, and their exact scores."""

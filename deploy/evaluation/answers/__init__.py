"""Measures whole answers against golden questions: the suite `answers`."""

"""Keeps an index complete after a kill, and its memory usage low while it grows."""

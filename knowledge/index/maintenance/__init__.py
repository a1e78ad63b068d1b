"""Keeps an index complete after a kill, and small in memory while it grows."""

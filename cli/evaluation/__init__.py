"""Measures Refdesk on questions with known answers."""

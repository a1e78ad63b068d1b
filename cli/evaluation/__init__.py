"""Evaluates Refdesk on questions with known answers."""

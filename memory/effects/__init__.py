"""Receipts of calls that change something outside."""

"""Divides a question among workers."""

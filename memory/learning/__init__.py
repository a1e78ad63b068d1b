"""Stores the outcomes that assistants learn from."""

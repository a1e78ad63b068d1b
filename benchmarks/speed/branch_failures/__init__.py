"""Compares what becomes of parallel branches when one of them fails, or their process dies."""

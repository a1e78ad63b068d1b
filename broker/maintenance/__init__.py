"""Timed work: deadlines, delayed entries, recovery of orphaned entries, and erasure."""

"""Finds faults in what workers and tools report, by comparing it with records."""

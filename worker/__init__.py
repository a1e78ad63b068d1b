"""Runs agents: the life cycle of a worker process."""

"""The single record of what a swarm does: its tasks with their moves, its facts, its progress."""

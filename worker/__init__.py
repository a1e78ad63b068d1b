"""What runs an agent: the life and death of a worker process."""

"""How messages enter the queues."""

"""Who works: one agent, one file, one class."""

"""The documents of the assistants: those of an index, here or by its owner, and uploads."""

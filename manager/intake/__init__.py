"""Opens a message for its first decision."""

"""What reviews need: documents of a conversation, the law by its name, and the report."""

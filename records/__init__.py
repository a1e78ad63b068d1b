"""Records of ended questions for the owner, in a database apart from the delivery of messages."""

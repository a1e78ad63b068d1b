"""Records of ended questions for the owner, in a database separate from message delivery."""

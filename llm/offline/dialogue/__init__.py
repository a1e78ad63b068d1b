"""Rules about turns of a conversation: what they do, and what they are about."""

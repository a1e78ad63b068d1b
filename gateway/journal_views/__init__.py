"""Views of the journal of a message: its trajectory, and what each agent took."""

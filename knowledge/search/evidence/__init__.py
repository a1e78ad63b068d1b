"""What a search looks like in numbers, for the decisions that are based on it."""

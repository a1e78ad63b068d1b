"""Reading an answer while a model writes it."""

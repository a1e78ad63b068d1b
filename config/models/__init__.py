"""Settings of models and of their vendors."""

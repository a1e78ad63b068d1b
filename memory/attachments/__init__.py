"""Documents that belong to one conversation."""

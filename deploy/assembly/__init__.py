"""The composition root, which is the only place that chooses concrete classes."""

"""The composition root: the only place that chooses concrete classes."""

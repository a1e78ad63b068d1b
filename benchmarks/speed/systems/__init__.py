"""The systems that are measured; each processes the same question with idiomatic code."""

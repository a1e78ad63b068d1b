"""The systems that are measured: each carries the same question as its users would write it."""

"""The tools of an assistant."""

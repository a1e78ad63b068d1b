"""Verdicts about requirements, the passages and numbers they rest on, and their findings."""

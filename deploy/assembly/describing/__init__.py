"""Describing pages with the model of `DESCRIPTION_MODEL`."""

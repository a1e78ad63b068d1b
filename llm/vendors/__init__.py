"""Clients of model vendors, and the code that they share."""

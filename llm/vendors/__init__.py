"""Vendors' clients and what every vendor model shares."""

"""Brings documents here from places that are no folder."""

"""Turns messages of chat platforms into questions of the desk."""

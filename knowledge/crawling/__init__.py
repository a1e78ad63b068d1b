"""Fetches the pages of a website politely, and keeps them until they are read."""

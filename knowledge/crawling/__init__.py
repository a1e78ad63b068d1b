"""Fetches the pages of a website politely, and stores them until they are read."""

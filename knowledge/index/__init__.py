"""Keeps documents, their chunks and their vectors."""

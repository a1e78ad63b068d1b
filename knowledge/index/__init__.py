"""Stores documents, their chunks and their vectors in Qdrant, embedded or on a server."""

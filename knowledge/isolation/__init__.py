"""Reads documents in a process that is killed if a document takes too much time or memory."""

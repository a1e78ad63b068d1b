"""Reads documents in a process that is ended when a document takes too much time or memory."""

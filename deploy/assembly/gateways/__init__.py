"""Composes the HTTP channel, the chat channels, and the sockets they listen on."""

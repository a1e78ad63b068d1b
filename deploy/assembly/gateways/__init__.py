"""Assembles the HTTP channel, the chat channels, and the sockets on which they listen."""

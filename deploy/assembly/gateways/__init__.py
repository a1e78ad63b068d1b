"""Puts the doors together: HTTP, chat platforms, and the sockets they listen on."""

"""The routes of the HTTP channel."""

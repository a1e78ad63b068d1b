"""Limits of single people: visitors of websites, who guesses keys, people in chats."""

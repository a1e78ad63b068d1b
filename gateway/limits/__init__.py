"""Limits of single people: visitors of websites, people who guess keys, people in chats."""

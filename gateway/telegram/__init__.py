"""The Telegram channel: receives updates by webhook or long polling, and edits answers in."""

"""The Telegram channel, which receives updates by webhook or long polling, and edits answers in."""

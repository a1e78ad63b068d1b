"""The Telegram channel, which receives updates by webhook or long polling, and edits its posts to
show answers.
"""

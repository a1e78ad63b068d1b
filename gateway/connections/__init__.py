"""Bounds what a connection may cost before and while a request is answered.

The limits hold below the application, for every server of the gateway: the HTTP channel and the
webhooks of Slack and Telegram. What is bounded is bytes (head, framing, buffered bodies, unread
answers), time (head, body, an answer that nobody reads) and numbers (connections in all and of one
address).
"""

"""Bounds the cost of a connection before and while a request is answered.

The limits apply below the application, for every server of the gateway: the HTTP channel and the
webhooks of Slack and Telegram. They bound bytes (head, framing, buffered bodies, unread answers),
time (head, body, an answer that the client does not read) and numbers (connections in total and per
address).
"""

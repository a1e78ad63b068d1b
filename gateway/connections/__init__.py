"""Limits the resources that a connection can use before and while a request is answered.

The limits are applied below the application, for every server of the gateway: the HTTP channel, and
the webhooks of Slack and Telegram. They limit bytes (head, framing, buffered bodies, unread
responses), time (head, body, responses that the client does not read), and counts (connections in
total and per address).
"""

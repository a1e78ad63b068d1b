"""Conversations, sessions, chat state, caches, rate limits and locks in Redis.

`key_names` lists every key. The manager reads a conversation when a message starts. The broker
writes it when the message ends, in the script that ends the message.
"""

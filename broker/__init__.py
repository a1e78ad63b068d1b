"""Delivers envelopes over Redis Streams with consumer groups and Lua scripts."""

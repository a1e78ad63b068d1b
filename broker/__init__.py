"""How envelopes travel: Redis Streams, consumer groups, Lua."""

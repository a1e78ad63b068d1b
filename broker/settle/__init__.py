"""Writing: what hops settle becomes arguments of one script call per shard."""

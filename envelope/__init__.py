"""The message that agents exchange: immutable values without I/O."""

"""The value that travels: pure, no I/O, no Redis, no clock of its own."""

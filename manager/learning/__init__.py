"""Notes how swarms did, for later plans."""

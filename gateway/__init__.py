"""The channels through which people and programs send messages and receive replies."""

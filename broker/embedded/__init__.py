"""The private redis-server of a data folder."""

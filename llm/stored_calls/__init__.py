"""Stores finished model calls: for redelivered envelopes, and for equal questions of others."""

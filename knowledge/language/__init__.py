"""Which language a text is in: scripts, n-grams and what the conversation was in so far."""

"""What is remembered: conversations, preferences, pauses, caches."""

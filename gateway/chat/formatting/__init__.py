"""Text of answers as chat platforms take it."""

"""What an answer may point to: the sources that it cites, and no other place."""

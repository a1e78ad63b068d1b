"""Rules that choose the calls of each round of a plan."""

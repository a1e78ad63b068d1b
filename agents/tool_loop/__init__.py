"""The agents of the tool loop, and the one that chooses between the ways."""

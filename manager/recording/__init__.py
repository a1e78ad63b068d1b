"""Records in the payload what a hop means for its question."""

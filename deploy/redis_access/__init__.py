"""What each part of the product may do in Redis."""

"""HTTP to others, safe against addresses of the network inside."""

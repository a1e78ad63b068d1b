"""Settings of the ways in which questions are answered."""

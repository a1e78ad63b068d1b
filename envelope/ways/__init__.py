"""What the steps of the ways leave in the payload."""

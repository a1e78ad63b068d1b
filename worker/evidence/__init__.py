"""Records what hops read and wrote."""

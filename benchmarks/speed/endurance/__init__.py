"""Long runs: what a system that works for weeks must keep up, in minutes."""

"""Requirements: what a rule obliges, forbids, permits or defines, with its place."""

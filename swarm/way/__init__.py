"""Plans of the way `swarm`: from a decision to workers, needed facts, and missing parts."""

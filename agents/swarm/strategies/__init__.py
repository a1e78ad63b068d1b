"""The strategies of the swarm, one a module, and their registry."""

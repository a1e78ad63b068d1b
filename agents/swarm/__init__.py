"""The agents of the swarm: plan, gather facts, keep the ledger, work, synthesize."""

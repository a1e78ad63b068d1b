"""The swarm: several workers at the same time, for questions that are too large for one search. The
agents `plan`, `gather`, `ledger`, `work` and `synthesize` are the stages. `plan_making` divides a
question by one of the `strategies`, `workers` has the types of workers, `ledger` the tasks. All
modules but the agents are free of I/O.
"""

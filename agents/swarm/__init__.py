"""The swarm, which runs several workers in parallel for questions that are too large for one
search. The agents `plan`, `gather`, `ledger`, `work` and `synthesize` are the stages. `plan_making`
divides a question with one of the `strategies`, `workers` contains the types of workers, and
`ledger` the tasks. All modules except the agents are free of I/O.
"""

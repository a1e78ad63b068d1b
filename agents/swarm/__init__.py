"""The swarm: workers side by side, for questions that are too large for one search.

The agents plan, gather facts from the user, keep the ledger, work, and synthesize. `planning`
divides a question, `strategies` say how, `workers` do one task each, `tasks`, `rounds` and
`progress` are the ledger, `advisor` remembers what did well. All but the agents are functions
without I/O.
"""

"""Plans for questions that are too large for one search, and all that their workers need.

`planning` divides a question among workers, `strategies` decide how, `workers` are the types of
workers, `ledger` records tasks and facts, `information` finds what the user must still say,
`synthesis` merges results, `learning` remembers what did well, and `integrity` finds faults.
Nothing here routes, waits or stores: each function takes values and returns values.
"""

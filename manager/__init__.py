"""Decides where each envelope goes next: the flow table, its state machine and the replies.

`flow` defines what a table is, `flows` holds the tables, `classify` derives the event of a hop from
what the agent wrote, `machine` selects the row and checks the limits without I/O, and `manager`
turns the decision into a settlement.
`replies` writes the final reply and the changes of the conversation's memory.
"""

"""Routes envelopes through the stages of a flow, and ends messages with a final reply.

`flow` defines the structure of a flow table, `flows` contains the tables, `classify` derives the
event of a hop from the writes of its agent, `machine` selects the row and checks the limits without
I/O, and `manager` turns the decision into a settlement. `replies` builds the final reply and the
changes to the conversation memory.
"""

"""Encodes the reply that a script gives where no worker ended the question.

The same reply serves the deadline and a dead letter, whose reasons differ. It is stored once, as
three lines: the shared beginning, the rest at the deadline, and the rest of a dead letter. JSON has
no line break, and a reply with one form for both is one line.
"""

from broker.values import Fields
from envelope.encoding import to_json


def encode_last_resort(reply: Fields, dead_letter_changes: Fields) -> bytes:
    """Return the reply; `dead_letter_changes` replace its fields if the question is buried."""
    if not dead_letter_changes:
        return to_json(reply)
    shared = {name: value for name, value in reply.items() if name not in dead_letter_changes}
    own = {name: reply[name] for name in dead_letter_changes if name in reply}
    rests = (_encode_rest(own, shared), _encode_rest(dead_letter_changes, shared))
    return b"\n".join((to_json(shared)[:-1], *rests))


def _encode_rest(fields: Fields, shared: Fields) -> bytes:
    """Return the fields that follow the shared ones, with the end of the object."""
    return b"," + to_json(fields)[1:] if fields and shared else to_json(fields)[1:]

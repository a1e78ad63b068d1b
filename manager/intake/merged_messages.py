"""Joins the texts of messages that were merged when they were accepted."""

from broker.values import Delivery
from envelope.envelope import Envelope, decode
from manager.contract import write_payload


def merge_messages(envelope: Envelope, delivery: Delivery) -> Envelope:
    """Return the envelope with the texts of the messages that were merged into it at acceptance."""
    if not delivery.merged:
        return envelope
    joined = [envelope, *(decode(frame) for frame in delivery.merged)]
    groups = set(envelope.groups).intersection(*(each.groups for each in joined))
    texts = [str(each.payload.get("text") or "") for each in joined]
    return envelope.with_groups(tuple(sorted(groups))).replace(
        payload=write_payload(envelope.payload, {"text": "\n".join(texts)})
    )

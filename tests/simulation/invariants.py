"""States the broker's promises on the content of Redis, without the model.

Holds for flows that send one frame at a time: then a question is in one place, always.
"""

from collections import Counter

from tests.simulation.state_snapshot import Facts


def check_promises(facts: Facts) -> None:
    """Raise AssertionError for the first promise that does not hold."""
    places = _places(facts)
    opened = {name for name, record in facts["record"].items() if not record[4]}
    assert set(facts["deadlines"]) == opened, "what is open has a deadline, and nothing else has"
    assert sum(facts["open"].values()) == len(opened), "the open questions are counted"
    for name in opened:
        assert places[name] == 1, f"{name} is open and stands in {places[name]} places"
    for name, (kinds, _) in facts["journal"].items():
        finished = kinds.count("finished")
        assert finished == (name not in opened), f"{name} has {finished} outcomes"
        assert "finished" not in kinds[:-1], f"{name} went on after its outcome"
    for replies in facts["results"].values():
        twice = [name for (name, _), count in Counter(replies).items() if count > 1]
        assert not twice, f"delivered twice: {twice}"
    _check_order(facts, opened)


def _places(facts: Facts) -> Counter[str]:
    """Count where a question stands: travelling, parked for a retry, or waiting to start."""
    travelling = (row[0] for rows in facts["stream"].values() for row in rows)
    parked = (token.split(" ")[-1] for token in facts["parked"])
    return Counter([*travelling, *parked, *facts["conversation"]])


def _check_order(facts: Facts, opened: set[str]) -> None:
    for conversation, names in facts["order"].items():
        assert names, f"{conversation} keeps an empty order"
        assert set(names) <= opened, f"{conversation} waits for a question that has ended"
        started = [name for name in names if name not in facts["conversation"]]
        assert started in ([], names[:1]), f"{conversation} started {started} out of order"
    ordered = {name for names in facts["order"].values() for name in names}
    assert ordered == opened, "what is open has its place in its conversation"

"""States the broker's promises on the content of Redis, without the model.

A question, and each branch of it that counts, is in one place, always: on a stream, parked,
waiting for its turn, or in a join that waits for its branches. A branch that looks at new messages
is on a stream as often as there are such messages.
"""

from collections import Counter
from collections.abc import Mapping

from tests.simulation.branch_moves import path_of
from tests.simulation.expected_state import BranchState, above, is_watch
from tests.simulation.state_snapshot import Facts


def check_promises(facts: Facts) -> None:
    """Raise AssertionError for the first promise that does not hold."""
    places = _places(facts)
    opened = {name for name, record in facts["record"].items() if not record[4]}
    assert set(facts["deadlines"]) == opened, "what is open has a deadline, and nothing else has"
    assert sum(facts["open"].values()) == len(opened), "the open questions are counted"
    for name in opened:
        for unit in ("", *_list_alive(facts["branches"].get(name, {}))):
            result = places[name, unit]
            assert result == 1, f"{name} {unit} is open and stands in {result} places"
    for name, (kinds, _) in facts["journal"].items():
        finished = kinds.count("finished")
        assert finished == (name not in opened), f"{name} has {finished} outcomes"
        assert "finished" not in kinds[:-1], f"{name} went on after its outcome"
    for replies in facts["results"].values():
        twice = [name for (name, _), count in Counter(replies).items() if count > 1]
        assert not twice, f"delivered twice: {twice}"
    _check_order(facts, opened)
    for name, join in facts["joins"]:
        tokens = [token for token in facts["delayed"] if token.startswith(f"j {join} ")]
        assert any(token.endswith(f" {name}") for token in tokens), f"{join} has no deadline"


def _places(facts: Facts) -> Counter[tuple[str, str]]:
    """Count where a question or a branch stands: travelling, parked for a retry, waiting to start,
    or in a join.
    """
    rows = (row for rows in facts["stream"].values() for row in rows if row[1] is not None)
    travelling = ((row[0], path_of(row[1])) for row in rows)
    parked = ((token.split(" ")[-1], path_of(frame)) for token, frame in facts["parked"].items())
    starting = ((name, "") for name in facts["conversation"])
    joined = ((name, above(join)) for name, join in facts["joins"])
    waiting = (
        (name, path) for (name, _), join in facts["joins"].items() for path, _, _ in join[-1]
    )
    return Counter([*travelling, *parked, *starting, *joined, *waiting])


def _list_alive(branches: Mapping[str, str]) -> list[str]:
    state = BranchState(dict(branches))
    return [path for path in branches if state.is_alive(path) and not is_watch(path)]


def _check_order(facts: Facts, opened: set[str]) -> None:
    for conversation, names in facts["order"].items():
        assert names, f"{conversation} keeps an empty order"
        assert set(names) <= opened, f"{conversation} waits for a question that has ended"
        started = [name for name in names if name not in facts["conversation"]]
        assert started in ([], names[:1]), f"{conversation} started {started} out of order"
    ordered = {name for names in facts["order"].values() for name in names}
    assert ordered == opened, "what is open has its place in its conversation"

from tools.calls import ToolCall, ToolErrorType
from tools.waves import Waves, arrange_waves


def call(name: str, *depends_on: str) -> ToolCall:
    return ToolCall(call_id=name, tool="search", depends_on=depends_on)


def names(found: Waves) -> list[list[str]]:
    return [[one.call_id for one in wave] for wave in found.waves]


def test_independent_calls_are_one_wave_and_a_result_that_feeds_another_comes_before_it() -> None:
    found = arrange_waves([call("c", "a", "b"), call("a"), call("b"), call("d", "c")])

    assert names(found) == [["a", "b"], ["c"], ["d"]]
    assert found.refused == ()


def test_a_call_may_depend_on_a_result_of_an_earlier_round() -> None:
    assert names(arrange_waves([call("b", "a")], done=frozenset({"a"}))) == [["b"]]


def test_a_cycle_is_refused_with_those_that_wait_for_it_and_the_rest_runs() -> None:
    found = arrange_waves([call("a", "b"), call("b", "a"), call("c", "b"), call("d")])

    assert names(found) == [["d"]]
    assert {one.call_id for one in found.refused} == {"a", "b", "c"}
    assert {one.error_type for one in found.refused} == {ToolErrorType.VALIDATION}
    assert "cycle" in (found.refused[0].error or "")


def test_a_call_that_waits_for_itself_or_for_nobody_is_refused() -> None:
    found = arrange_waves([call("a", "a"), call("b", "missing"), call("c")])

    assert names(found) == [["c"]]
    assert {one.call_id for one in found.refused} == {"a", "b"}


def test_an_id_that_occurs_twice_runs_once() -> None:
    found = arrange_waves([call("a"), call("a"), call("b")], done=frozenset({"b"}))

    assert names(found) == [["a"]]
    assert [one.call_id for one in found.refused] == ["a", "b"]

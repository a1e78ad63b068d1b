"""Facts are asked for only where a request cannot begin without them."""

import pytest

from swarm.way.identifying import find_bare_subject, identify_required
from swarm.workers.worker_type import make_registry
from tests.swarm.builders import make_swarm_plan, make_worker


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Research quantum computing", "quantum computing"),
        ("How often are webhooks retried?", ""),
        ("Research how often webhooks are retried and which errors of the API end it", ""),
        ("Research quantum computing?", ""),
        ("", ""),
    ],
)
def test_a_request_that_only_names_a_subject_is_noticed(question: str, subject: str) -> None:
    assert find_bare_subject(question) == subject


def test_the_aspect_of_a_bare_subject_is_needed() -> None:
    plan = make_swarm_plan(make_worker("a"), question="Research quantum computing")

    fields = identify_required(plan, make_registry())

    assert [one.name for one in fields["a"]] == ["aspect"]


def test_the_facts_of_a_type_of_worker_are_needed() -> None:
    plan = make_swarm_plan(make_worker("a", role="code"))

    fields = identify_required(plan, make_registry())

    assert [one.name for one in fields["a"]] == ["programming_language"]

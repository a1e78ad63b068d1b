"""Facts that only the user knows are asked for once, with their choices."""

from agents.swarm.gather import gather
from agents.swarm.swarm_plan import FieldType, RequiredInfoField

PLAN = RequiredInfoField(
    name="plan", question="Which plan?", type=FieldType.CHOICE, choices=("Team", "Business")
)
SINCE = RequiredInfoField(name="since", question="Since when?", type=FieldType.DATE)


def test_a_field_that_several_workers_need_is_asked_once_with_its_choices() -> None:
    found = gather({"a": (PLAN,), "b": (PLAN, SINCE)}, {})

    plan, since = found.questions
    assert (plan.id, plan.suggestions, plan.workers) == ("plan", ("Team", "Business"), ("a", "b"))
    assert since.text == "Since when?"


def test_what_is_known_is_not_asked_for() -> None:
    found = gather({"a": (PLAN, SINCE)}, {"since": "2026-01-01", "plan": None})

    assert (found.questions, found.values) == ((), {"since": "2026-01-01", "plan": None})


def test_the_only_choice_that_the_user_has_named_is_taken() -> None:
    named = gather({"a": (PLAN,)}, {}, ["We have the Team plan.", "How do I export?"])
    both = gather({"a": (PLAN,)}, {}, ["Is Team or Business better?"])

    assert (named.values, named.questions) == ({"plan": "Team"}, ())
    assert len(both.questions) == 1


def test_an_optional_field_gets_its_default() -> None:
    usual = PLAN.model_copy(update={"required": False, "default": "Team"})

    assert gather({"a": (usual,)}, {}).values == {"plan": "Team"}

"""A planned sequence is cleaned, completed and put in an order in which each finds its inputs."""

from envelope.specialists import (
    FULL_REVIEW,
    NEEDS,
    SpecialistName,
    complete_sequence,
    list_waves,
    plan_further_round,
)


def test_a_valid_sequence_is_unchanged() -> None:
    sequence = complete_sequence(["extractor", "requirement_extractor", "compliance"])

    assert sequence.names == ("extractor", "requirement_extractor", "compliance")
    assert sequence.notes == ()


def test_unknown_and_doubled_names_are_left_out_and_needed_ones_are_added() -> None:
    sequence = complete_sequence(["report_generator", "Compliance", "lawyer", "compliance"])

    assert sequence.names == (
        "extractor",
        "requirement_extractor",
        "compliance",
        "report_generator",
    )
    assert sequence.notes == (
        "'lawyer' was left out: there is no such specialist",
        "requirement_extractor was added: compliance needs it",
        "extractor was added: requirement_extractor needs it",
    )


def test_an_empty_plan_has_the_extractor_and_corrects_nothing() -> None:
    sequence = complete_sequence([])

    assert (sequence.names, sequence.notes) == (("extractor",), ())


def test_the_synthesis_is_never_in_a_sequence() -> None:
    assert "synthesis" not in complete_sequence(["synthesis", "classifier"]).names


def test_every_specialist_comes_after_all_that_it_needs() -> None:
    waves = list_waves(FULL_REVIEW)
    place = {name: at for at, wave in enumerate(waves) for name in wave}

    assert set(place) == set(FULL_REVIEW)
    for name in FULL_REVIEW:
        assert all(place[needed] < place[name] for needed in NEEDS[name])


def test_a_further_round_runs_missing_specialists_and_repeats_their_dependents() -> None:
    done = ("extractor", "requirement_extractor", "compliance", "gap_synthesizer")

    assert plan_further_round(SpecialistName.COMPLIANCE, done) == ("compliance", "gap_synthesizer")
    assert plan_further_round(SpecialistName.RISK_VERIFIER, ("extractor",)) == (
        "requirement_extractor",
        "compliance",
        "risk_verifier",
    )

"""A report cites sources whose texts have every quotation of it."""

from swarm.synthesis.cited_report import cite_report
from swarm.synthesis.report import write_report
from tests.swarm.builders import (
    make_output,
    make_passage,
    make_swarm_plan,
    make_wording,
    make_worker,
)

TEXT = "Failed events are sent again 8 times."
WORKER = make_worker("a", objective="How often are failed events sent again?")
OUTPUTS = {"a": make_output("a", make_passage("p", TEXT))}


def test_every_number_in_the_text_has_a_source_with_the_quotation() -> None:
    cited = cite_report(write_report(make_swarm_plan(WORKER), OUTPUTS, make_wording()), OUTPUTS)

    [source] = cited.sources
    assert f"{TEXT} [1]" in cited.text
    assert (source.number, source.text) == (1, TEXT)


def test_claims_that_a_judge_rejected_are_left_out() -> None:
    report = write_report(make_swarm_plan(WORKER), OUTPUTS, make_wording())

    assert TEXT not in cite_report(report, OUTPUTS, avoid=[TEXT]).text


def test_without_results_there_is_no_source() -> None:
    assert cite_report(write_report(make_swarm_plan(WORKER), {}, make_wording()), {}).sources == ()

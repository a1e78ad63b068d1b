"""What workers wrote reaches the writer, with their passages as numbered sources."""

from agents.swarm.material import cite_by_number, gather_material, make_table
from agents.swarm.workers import WorkerStatus
from tests.agents.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker


def test_the_text_of_a_worker_cites_the_numbers_of_its_passages() -> None:
    plan = make_swarm_plan(make_worker("w0", specialization="price"), make_worker("w1"))
    price, other = make_passage("p", "It costs 12."), make_passage("o", "A note.")
    outputs = {
        "w0": make_output("w0", other, price, text="It costs 12 [p#0]; nobody says more [x#9]."),
        "w1": make_output("w1", status=WorkerStatus.FAILED, error="away"),
    }

    material = gather_material(plan, outputs)

    first, second = material.findings
    assert [source.citation.chunk_id for source in material.sources] == ["p#0", "o#0"]
    assert (first.worker, first.text) == ("price", "It costs 12 [1]; nobody says more .")
    assert first.sources == (2, 1)
    assert (second.text, second.problem) == ("", "away")


def test_every_passage_has_its_turn_within_the_room() -> None:
    workers = [make_worker(f"w{n}") for n in range(3)]
    outputs = {
        worker.id: make_output(
            worker.id, *(make_passage(f"{worker.id}-{n}", "x" * 100) for n in range(9))
        )
        for worker in workers
    }
    plan = make_swarm_plan(*workers)

    all_of_them = gather_material(plan, outputs, room=10_000)
    some = gather_material(plan, outputs, room=650)

    assert (len(all_of_them.sources), all_of_them.left_out) == (27, 0)
    assert [source.citation.document_id for source in some.sources] == [
        "w0-0", "w1-0", "w2-0", "w0-1", "w1-1", "w2-1",
    ]  # fmt: skip
    assert some.left_out == 21


def test_brackets_that_are_no_id_stay_and_cite_nothing() -> None:
    assert cite_by_number("array[0] of [a#1] and [b]", {"a#1": 3}) == r"array\[0\] of [3] and [b]"


def test_no_id_of_a_passage_stays_in_the_text_of_a_worker() -> None:
    citations = [make_passage(name, "It costs 12.").citation for name in ("a", "b")]

    text = cite_by_number("12 (a#0), as a#0 and b#0 say [b#0] [a].", {"a#0": 3}, citations)

    assert text == f"12 [3], as [3] and {citations[1].title} say  [{citations[0].title}]."


def test_a_worker_without_a_result_is_left_out_where_another_one_looked_up_the_same_item() -> None:
    plan = make_swarm_plan(
        make_worker("w0", subject="Alder"), make_worker("w1", subject="Birch"),
        make_worker("w2", subject="Alder"),
    )  # fmt: skip
    outputs = {"w2": make_output("w2", make_passage("p", "It costs 12."), text="12 [p#0]")}

    material = gather_material(plan, outputs)

    assert [(finding.text, bool(finding.problem)) for finding in material.findings] == [
        ("", True), ("12 [1]", False),
    ]  # fmt: skip


def test_each_cell_is_a_finding_or_said_to_be_missing() -> None:
    cells = {
        ("alfa", "Price"): "12 euros | a month [1]",
        ("Alfa", "support"): "",
        ("Omega", "price"): "9 [2]",
    }

    table = make_table(("Alfa", "Beta"), ("price", "support"), cells)

    assert table.render("Item", "not found") == (
        "| Item | price | support |\n"
        "| --- | --- | --- |\n"
        "| Alfa | 12 euros \\| a month [1] | not found |\n"
        "| Beta | not found | not found |"
    )
    prices = make_table(("Alfa", "Beta"), ("price",), cells, {"Beta": "not read: too busy"})
    assert "| Beta | not read: too busy |" in prices.render("Item", "not found")

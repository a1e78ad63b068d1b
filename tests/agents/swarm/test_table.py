"""A table has a cell for each item and criterion, and counts those with a finding."""

from agents.swarm.material import make_table


def test_each_cell_is_a_finding_or_named_as_missing() -> None:
    cells = {
        ("alfa", "Price"): "12 euros | a month [1]",
        ("Alfa", "support"): "",
        ("Omega", "price"): "9 [2]",
    }

    table = make_table(("Alfa", "Beta"), ("price", "support"), cells)

    assert table.render("Item", "not found") == (
        "| Item | price | support |\n"
        "| --- | --- | --- |\n"
        "| Alfa | 12 euros / a month [1] | not found |\n"
        "| Beta | not found | not found |"
    )
    assert (table.found, table.total) == (1, 4)
    assert table.list_missing() == ("Alfa: support", "Beta: price", "Beta: support")

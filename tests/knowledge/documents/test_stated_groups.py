"""Who may read a document, as the document or its folder states it."""

import json

import pytest

from tests.knowledge.documents.conftest import Desk

RULES = '[[documents]]\npath = "staff/*"\ngroups = ["hr"]\n'
PAGE = "# Leave\n\nThirty days.\n"


def groups(desk: Desk) -> dict[str, tuple[str, ...]]:
    return {name: document.groups for name, document in desk.index.documents.items()}


@pytest.mark.parametrize(
    "stated",
    [
        "groups: [sales, hr]",
        "groups: hr, sales",
        "Groups:\n  - hr\n  - sales",
        '"groups": [hr, sales]',
        'groups = ["hr", "sales"]',
        'Groups = "sales, hr"',
    ],
)
async def test_a_page_states_its_groups_in_front(desk: Desk, stated: str) -> None:
    fence, title = ("+++", "title = 'Leave'") if " = " in stated else ("---", "title: Leave")
    desk.write("leave.md", f"{fence}\n{title}\n{stated}\n{fence}\n{PAGE}")
    desk.write("open.md", PAGE)

    await desk.ingest()

    assert groups(desk) == {"docs/leave": ("hr", "sales"), "docs/open": ()}


@pytest.mark.parametrize(
    "front",
    [
        "groups:\n",
        "groups: []\n",
        "groups: 3\n",
        "groups: [hr, 3]\n",
        "groups: {hr: true}\n",
        "groups: [hr\n",
        "groups: *hr\n",
        "title: [\ngroups: [hr]\n",
        "- groups\ngroups: [hr]\n",
        "groups = 3\n",
        "title =\ngroups = ['hr']\n",
    ],
)
async def test_a_page_whose_groups_are_unclear_is_not_read_rather_than_public(
    desk: Desk, front: str
) -> None:
    fence = "+++" if " = " in front else "---"
    desk.write("leave.md", f"{fence}\n{front}{fence}\n{PAGE}")

    result = await desk.ingest()

    assert desk.index.documents == {}
    [(source, reason)] = result.failed
    assert source == "leave.md"
    assert "the readers of this page are unclear" in reason


async def test_front_matter_without_an_end_does_not_publish_a_page(desk: Desk) -> None:
    desk.write("leave.md", f"---\ngroups: [hr]\n\n{PAGE}")
    desk.write("tariffs.md", f"+++\ngroups = ['hr']\n\n{PAGE}")

    result = await desk.ingest()

    assert desk.index.documents == {}
    assert len(result.failed) == 2


async def test_a_prepared_document_states_its_groups(desk: Desk) -> None:
    lines = [
        {"id": "a", "content": "One.", "groups": ["hr"]},
        {"page_id": "b", "markdown": "---\ngroups: [sales]\n---\n# B\n\nTwo."},
        {"passage_id": "c", "text": "Three."},
        {"unit_id": "d", "text": "Four.", "groups": "hr,sales"},
        {"passage_id": "e", "text": "Five.", "groups": None},
        {"passage_id": "f", "text": "Six.", "groups": [{"name": "hr"}]},
    ]
    desk.write("all.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))

    result = await desk.ingest()

    assert groups(desk) == {"a": ("hr",), "b": ("sales",), "c": (), "d": ("hr", "sales")}
    assert len(result.failed) == 2


async def test_a_folder_states_the_groups_of_its_files_whatever_their_format(desk: Desk) -> None:
    desk.write("refdesk.toml", RULES)
    desk.write("staff/leave.md", PAGE)
    desk.write("staff/deep/pay.txt", "Pay day is the last day.\n")
    desk.write("staff/list.csv", "name,amount\nbonus,9000\n")
    desk.write("staff/lines.jsonl", '{"passage_id": "p", "text": "Bonus."}\n')
    desk.write("open.md", PAGE)

    result = await desk.ingest()

    assert (result.failed, result.skipped, result.warned) == ((), (), ())
    results = groups(desk)
    assert results.pop("docs/open") == ()
    assert len(results) == 4
    assert set(results.values()) == {("hr",)}


async def test_the_groups_of_a_page_replace_those_of_its_folder(desk: Desk) -> None:
    desk.write("refdesk.toml", RULES)
    desk.write("staff/board.md", f"---\ngroups: [board]\n---\n{PAGE}")

    await desk.ingest()

    assert groups(desk) == {"docs/staff/board": ("board",)}


async def test_a_part_of_a_folder_and_a_single_file_keep_the_rules_above_them(desk: Desk) -> None:
    desk.write("refdesk.toml", RULES)
    file = desk.write("staff/leave.md", PAGE)

    await desk.ingest(desk.folder / "staff")
    assert set(groups(desk).values()) == {("hr",)}
    desk.index.documents.clear()
    desk.index.roots.clear()
    await desk.ingest(file)
    assert set(groups(desk).values()) == {("hr",)}


async def test_a_new_rule_changes_documents_that_are_in_the_index(desk: Desk) -> None:
    desk.write("staff/leave.md", PAGE)
    await desk.ingest()
    assert groups(desk) == {"docs/staff/leave": ()}

    desk.write("refdesk.toml", RULES)
    result = await desk.ingest()

    assert (result.changed, groups(desk)) == (1, {"docs/staff/leave": ("hr",)})


async def test_unusable_rules_stop_the_folder_and_keep_what_is_in_the_index(desk: Desk) -> None:
    rules = desk.write("refdesk.toml", RULES)
    desk.write("staff/leave.md", PAGE)
    await desk.ingest()
    rules.write_text(RULES.replace("groups", "group"))
    desk.write("staff/new.md", PAGE)

    result = await desk.ingest()

    assert groups(desk) == {"docs/staff/leave": ("hr",)}
    [(_, reason)] = result.failed
    assert "refdesk.toml cannot be used: expected path with groups or version" in reason
    assert "refdesk.toml" in reason


async def test_a_rule_without_an_effect_is_a_warning(desk: Desk) -> None:
    desk.write("refdesk.toml", RULES.replace("staff/*", "Staff/*"))
    desk.write("staff/leave.md", PAGE)

    result = await desk.ingest()

    assert result.warned == (("refdesk.toml", "its rule for 'Staff/*' matches no document"),)


async def test_the_title_of_a_hidden_index_page_names_no_folder(desk: Desk) -> None:
    desk.write("falcon/index.md", "---\ngroups: [board]\n---\n# Layoffs in May\n\nText.\n")
    desk.write("falcon/open.md", PAGE)

    await desk.ingest()

    assert desk.index.documents["docs/falcon/open"].crumbs == ("Falcon", "Leave")

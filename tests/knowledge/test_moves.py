"""Documents follow their files: ids, texts and vectors stay, place, groups and addresses change."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from knowledge.documents.page import Page
from knowledge.errors import MoveRefused
from knowledge.index.listing import ListedDocument
from knowledge.index.overlap import survey_part
from knowledge.ingestion_report import IngestionResult
from knowledge.moves import DocumentMove, MovedSource, plan_moves
from knowledge.rule_descriptions import Description, RuleDescriber
from tests.knowledge.documents.conftest import Desk, desk

__all__ = ["desk"]


async def move(desk: Desk, old: Path, new: Path, web_address: str = "") -> IngestionResult:
    """Move documents of a desk, and count what is embedded from here on."""
    desk.index.keeps_vectors = True
    desk.embedder.batches.clear()
    moves = plan_moves(await desk.index.list_documents(), str(old), str(new))
    assert moves
    roots = {move.root for move in moves}
    return await desk.ingest(
        *(
            MovedSource(
                [move for move in moves if move.root == root],
                partial(survey_part, Path(root), web_address=web_address),
            )
            for root in roots
        )
    )


def is_paid(desk: Desk) -> bool:
    return any(desk.embedder.batches)


async def test_a_renamed_page_keeps_its_id_and_its_vectors_and_gets_its_new_crumbs(
    desk: Desk,
) -> None:
    old = desk.write("hr/leave.md", "Everybody has 27 days of leave.\n")
    await desk.ingest()
    vectors = desk.index.vectors["docs/hr/leave"]
    new = desk.folder / "people" / "vacation.md"
    new.parent.mkdir()
    old.rename(new)

    result = await move(desk, old, new)

    moved = desk.index.documents["docs/hr/leave"]
    assert (result.changed, result.added, result.removed, result.failed) == (1, 0, 0, ())
    assert (moved.source, moved.crumbs) == ("people/vacation.md", ("People", "Vacation"))
    assert [chunk.chunk_id for chunk in moved.chunks] == ["docs/hr/leave#0"]
    assert (desk.index.vectors["docs/hr/leave"], is_paid(desk)) == (vectors, False)


async def test_later_ingestions_know_a_moved_page_and_a_new_page_at_its_old_place(
    desk: Desk,
) -> None:
    old = desk.write("leave.md", "# Leave\n\nEverybody has 27 days of leave.\n")
    desk.write("de/leave.md", "# Urlaub\n\n27 Tage.\n")
    await desk.ingest()
    new = old.rename(desk.folder / "vacation.md")
    await move(desk, old, new)

    assert (await desk.ingest()).unchanged == 2
    new.write_text("# Leave\n\nEverybody has 30 days of leave.\n")
    desk.write("leave.md", "# Parental leave\n\nParents have three years.\n")
    result = await desk.ingest()
    again = await desk.ingest()

    assert (result.changed, result.added, result.removed, result.failed) == (1, 1, 0, ())
    assert (again.unchanged, again.failed) == (3, ())
    assert {name: one.title for name, one in desk.index.documents.items()} == {
        "docs/leave": "Leave",
        "docs/leave@de": "Urlaub",
        "docs/leave-2": "Parental leave",
    }


class UnreachableDescriber(RuleDescriber):
    """Describes by rules for now, as a model does that cannot be reached."""

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description:
        return replace(by_rules, is_provisional=True)


async def test_a_page_that_waits_for_its_description_keeps_its_id_and_goes_on_waiting(
    desk: Desk,
) -> None:
    desk.describer = UnreachableDescriber()
    old = desk.write("leave.md", "# Leave\n\nEverybody has 27 days of leave.\n")
    await desk.ingest()
    desk.describer = RuleDescriber()
    await move(desk, old, old.rename(desk.folder / "vacation.md"))
    kept = set(desk.index.documents)

    described = await desk.ingest()

    assert kept == {"docs/leave"}
    assert (described.changed, (await desk.ingest()).unchanged) == (1, 1)
    assert set(desk.index.documents) == {"docs/leave"}


async def test_a_renamed_source_keeps_the_ids_of_all_its_documents(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    desk.write("staff/b.md", "# B\n\nTwo.\n")
    await desk.ingest()
    new = desk.folder.rename(desk.folder.parent / "manual")

    result = await move(desk, desk.folder, new)

    assert (result.changed, result.removed, is_paid(desk)) == (2, 0, False)
    assert set(desk.index.documents) == {"docs/a", "docs/staff/b"}
    assert set(desk.index.roots.values()) == {str(new)}
    assert (await desk.ingest(new)).unchanged == 2


async def test_a_source_that_moves_with_its_name_is_read_at_its_new_place(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    (desk.folder.parent / "archive").mkdir()
    new = desk.folder.rename(desk.folder.parent / "archive" / "docs")

    await move(desk, desk.folder, new)

    assert desk.index.roots == {"docs/a": str(new)}
    assert not desk.index.documents["docs/a"].keeps_name


async def test_a_move_into_a_restricted_folder_restricts_at_once(desk: Desk) -> None:
    desk.write("refdesk.toml", '[[documents]]\npath = "hr/*"\ngroups = ["hr"]\n')
    desk.write("hr/other.md", "# Other\n\nText.\n")
    old = desk.write("bonus.md", "# Bonus\n\nNine thousand.\n")
    await desk.ingest()
    assert not desk.index.documents["docs/bonus"].groups

    await move(desk, old, old.rename(desk.folder / "hr" / "bonus.md"))

    assert desk.index.documents["docs/bonus"].groups == ("hr",)


async def test_the_web_address_is_that_of_the_new_place(desk: Desk) -> None:
    old = desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest(partial(survey_part, desk.folder, web_address="https://docs.acme.com"))

    await move(desk, old, old.rename(desk.folder / "b.md"), "https://docs.acme.com")

    assert desk.index.documents["docs/a"].url == "https://docs.acme.com/b.md"
    assert not is_paid(desk)


async def test_a_file_that_is_not_at_its_new_place_stays_as_it_was(desk: Desk) -> None:
    desk.write("staff/a.md", "# A\n\nOne.\n")
    lost = desk.write("staff/b.md", "# B\n\nTwo.\n")
    await desk.ingest()
    lost.unlink()
    new = (desk.folder / "staff").rename(desk.folder / "people")

    result = await move(desk, desk.folder / "staff", new)

    assert (result.changed, result.removed) == (1, 0)
    assert result.failed == (("people/b.md", "there is no file at the new place"),)
    assert desk.index.documents["docs/staff/a"].source == "people/a.md"
    assert desk.index.documents["docs/staff/b"].source == "staff/b.md"


async def test_what_was_ingested_at_the_new_place_already_is_replaced(desk: Desk) -> None:
    old = desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    desk.write("b.md", "# A\n\nOne.\n")
    await desk.ingest()
    old.unlink()

    result = await move(desk, old, desk.folder / "b.md")

    assert (result.removed, set(desk.index.documents)) == (1, {"docs/a"})


async def test_a_page_that_was_edited_after_its_move_is_embedded_anew(desk: Desk) -> None:
    old = desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    new = old.rename(desk.folder / "b.md")
    new.write_text("# A\n\nTwo.\n")

    await move(desk, old, new)

    assert is_paid(desk)
    assert desk.index.documents["docs/a"].content == "# A\n\nTwo."


async def test_a_new_rule_of_access_is_written_without_a_new_embedding(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    desk.embedder.batches.clear()
    desk.write("refdesk.toml", '[[documents]]\npath = "*"\ngroups = ["hr"]\n')

    result = await desk.ingest()

    assert (result.changed, desk.index.documents["docs/a"].groups) == (1, ("hr",))
    assert not is_paid(desk)


def list_one(root: str, source: str, name: str = "x") -> ListedDocument:
    return ListedDocument("x", "X", source, root, "en", 1, location_name=name)


@pytest.mark.parametrize(
    ("root", "source", "old", "new", "planned"),
    [
        ("/a/docs", "x.md", "/a/docs", "/b/docs", ("/b/docs", "/b/docs/x.md")),
        ("/a/docs", "x.md", "/a", "/b", ("/b/docs", "/b/docs/x.md")),
        ("/a/docs", "x.md", "/a/docs/x.md", "/a/docs/y.md", ("/a/docs", "/a/docs/y.md")),
        ("/a/docs", "hr/x.md", "/a/docs/hr", "/b/hr", ("/b/hr", "/b/hr/x.md")),
        ("/a/docs", "hr/x.md", "/a/docs/hr", "/all/hr", ("/all", "/all/hr/x.md")),
        ("/a/x.md", "x.md", "/a/x.md", "/a/y.md", ("/a/y.md", "/a/y.md")),
        ("/a/x.zip", "x.zip/p.md", "/a/x.zip", "/a/y.zip", ("/a/y.zip", "/a/y.zip/p.md")),
        ("git:/r/docs", "x.md", "git:/r", "git:/s", ("git:/s/docs", "git:/s/docs/x.md")),
    ],
)
def test_files_move_with_their_folder_and_their_source(
    root: str, source: str, old: str, new: str, planned: tuple[str, str]
) -> None:
    other = list_one("/all", "z.md")

    [move] = plan_moves([list_one(root, source), other], old, new)

    assert (move.root, move.file) == planned


@pytest.mark.parametrize(
    ("document", "old", "new", "reason"),
    [
        (list_one("/a", "x.md"), "/a", "/a", "two different places"),
        (list_one("/a", "x.md"), "/a", "git:/b", "a repository and a folder"),
        (list_one("https://a.com", "x.md"), "https://a.com", "https://b.com", "a website"),
        (list_one("/a", "x.md", name=""), "/a", "/b", "an earlier version"),
    ],
)
def test_a_move_that_cannot_be_made_says_why(
    document: ListedDocument, old: str, new: str, reason: str
) -> None:
    with pytest.raises(MoveRefused, match=reason):
        plan_moves([document], old, new)


def test_other_documents_do_not_move() -> None:
    document = list_one("/a/docs-2", "x.md")

    assert plan_moves([document], "/a/docs", "/b") == []
    assert DocumentMove(document, "/b", "/b/y.md", takes_root=False).source == "y.md"

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.knowledge.documents.conftest import Desk, LengthEmbedder
from tests.knowledge.documents.printing import print_pdf


def line(**record: object) -> str:
    return json.dumps(record) + "\n"


async def test_a_folder_becomes_documents_with_crumbs_and_names(desk: Desk) -> None:
    desk.write("01-routing/rate_plans.md", "# Rate plans\n\nA plan has a price.\n")
    desk.write("01-routing/index.md", "# All about routing\n\nRoutes.\n")

    result = await desk.ingest()

    plans = desk.index.documents["docs/01-routing/rate_plans"]
    routing = desk.index.documents["docs/01-routing/index"]
    assert (result.added, result.failed) == (2, ())
    assert plans.crumbs == ("All about routing", "Rate plans")
    assert routing.crumbs == ("All about routing",)
    assert (plans.source, plans.language) == ("01-routing/rate_plans.md", "en")
    assert plans.description == "A plan has a price."


RECORD = {
    "id": "doc-7f3a",
    "source": "https://domain.example/guide/plans",
    "crumbs": ["Guide", "Plans"],
    "description": "What a plan costs.",
    "content": "# Plans\n\nA plan costs 4 EUR.\n\nIt ends after a month.",
    "summary": "Plans and their prices.",
    "keypoints": ["4 EUR a plan"],
    "keywords": ["plan", "price"],
    "chunks": ["A plan costs 4 EUR.", "It ends after a month."],
}


async def test_a_record_in_a_json_file_is_the_page_that_its_source_names(desk: Desk) -> None:
    desk.write("export/doc-7f3a.json", json.dumps(RECORD, indent=2))

    result = await desk.ingest()

    document = desk.index.documents["doc-7f3a"]
    assert (result.added, result.failed, result.skipped) == (1, (), ())
    assert document.url == document.source == "https://domain.example/guide/plans"
    assert document.crumbs == ("Guide", "Plans")
    assert [chunk.text for chunk in document.chunks] == RECORD["chunks"]
    assert (document.summary, document.keypoints) == ("Plans and their prices.", ("4 EUR a plan",))
    assert document.keywords == ("plan", "price")
    assert document.description == "What a plan costs."


async def test_each_record_of_a_json_list_is_a_document_and_a_broken_one_is_named(
    desk: Desk,
) -> None:
    records = [RECORD, {**RECORD, "id": "other", "source": "a/b.md"}, {"id": "none"}]
    desk.write("all.json", json.dumps(records))

    result = await desk.ingest()

    assert set(desk.index.documents) == {"doc-7f3a", "other"}
    assert (desk.index.documents["other"].url, result.failed[0][0]) == (None, "all.json:3")


async def test_json_that_is_no_record_is_skipped(desk: Desk) -> None:
    desk.write("package.json", json.dumps({"name": "x", "files": [{"id": 1, "content": 2}]}))

    result = await desk.ingest()

    assert (result.added, result.failed) == (0, ())
    assert result.skipped[0][0] == "package.json"


async def test_a_folder_without_an_index_page_is_called_by_its_name(desk: Desk) -> None:
    desk.write("02-user_accounts/roles.md", "# Roles\n\nFive.\n")

    await desk.ingest()

    assert desk.index.documents["docs/02-user_accounts/roles"].crumbs == ("User accounts", "Roles")


async def test_a_new_title_of_an_index_page_moves_the_pages_below_it(desk: Desk) -> None:
    desk.write("api/README.md", "# API\n\nAll calls.\n")
    desk.write("api/errors.md", "# Errors\n\nCodes.\n")
    await desk.ingest()
    desk.write("api/README.md", "# The API\n\nAll calls.\n")

    result = await desk.ingest()

    assert result.changed == 2
    assert desk.index.documents["docs/api/errors"].crumbs == ("The API", "Errors")


async def test_unchanged_documents_are_neither_embedded_nor_written_again(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    desk.write("all.jsonl", line(passage_id="p", text="Two.") + line(passage_id="q", text="3."))
    await desk.ingest()
    desk.index.puts.clear()
    desk.embedder.batches.clear()

    result = await desk.ingest()

    assert (result.unchanged, result.added, result.changed, result.chunks) == (3, 0, 0, 0)
    assert (desk.index.puts, desk.embedder.batches) == ([], [])


async def test_only_what_changed_is_written_again(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    desk.write("all.jsonl", line(passage_id="p", text="Two.") + line(passage_id="q", text="3."))
    await desk.ingest()
    desk.index.puts.clear()
    desk.write("all.jsonl", line(passage_id="q", text="3.") + line(passage_id="p", text="Four."))

    result = await desk.ingest()

    assert (result.unchanged, result.changed, desk.index.puts) == (2, 1, ["p"])
    assert desk.index.documents["p"].content == "Four."


async def test_another_embedding_model_writes_everything_again(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    desk.embedder = LengthEmbedder("other")

    assert (await desk.ingest()).changed == 1


async def test_deleted_documents_are_removed_and_other_folders_keep_theirs(desk: Desk) -> None:
    gone = desk.write("one/a.md", "# A\n\nOne.\n")
    desk.write("one/b.md", "# B\n\nTwo.\n")
    desk.write("two/c.md", "# C\n\nThree.\n")
    await desk.ingest(desk.folder / "one", desk.folder / "two")
    gone.unlink()

    result = await desk.ingest(desk.folder / "one")

    assert result.removed == 1
    assert set(desk.index.documents) == {"one/b", "two/c"}


async def test_versions_of_a_page_in_several_languages_share_its_name(desk: Desk) -> None:
    desk.write("guide/hours.md", "# Hours\n\nOpen.\n")
    desk.write("de/guide/hours.md", "# Zeiten\n\nOffen.\n")
    desk.write("uk/guide/hours.md", "# \u0413\u043e\u0434\u0438\u043d\u0438\n\nText.\n")

    await desk.ingest()

    results = {identity: document.language for identity, document in desk.index.documents.items()}
    assert results == {
        "docs/guide/hours": "en",
        "docs/guide/hours@de": "de",
        "docs/guide/hours@uk": "uk",
    }
    assert {document.page for document in desk.index.documents.values()} == {"docs/guide/hours"}
    assert desk.index.documents["docs/guide/hours@de"].crumbs == ("Guide", "Zeiten")


async def test_two_folders_of_languages_ingested_side_by_side_share_names(desk: Desk) -> None:
    desk.write("en/hours.md", "# Hours\n\nOpen.\n")
    desk.write("de/hours.md", "# Zeiten\n\nOffen.\n")

    await desk.ingest(desk.folder / "en", desk.folder / "de")

    assert set(desk.index.documents) == {"hours", "hours@de"}


async def test_a_page_that_states_its_language_is_believed(desk: Desk) -> None:
    desk.language = "fr"
    desk.write("a.md", "---\nlang: pt-BR\n---\n# A\n\nUm.\n")
    desk.write("b.md", "# B\n\nDeux.\n")

    await desk.ingest()

    assert set(desk.index.documents) == {"docs/a@pt-br", "docs/b@fr"}
    assert desk.index.documents["docs/a@pt-br"].language == "pt"


async def test_a_folder_named_it_is_a_department_unless_a_translation_shows_otherwise(
    desk: Desk,
) -> None:
    desk.write("it/laptops.md", "# Laptops\n\nAsk us.\n")

    await desk.ingest()

    assert desk.index.documents["docs/it/laptops"].crumbs == ("It", "Laptops")


async def test_hidden_files_version_control_and_packages_are_left_out(desk: Desk) -> None:
    for path in (".git/a.md", "node_modules/x/readme.md", ".hidden.md", "picture.png"):
        desk.write(path, "# No\n\nNo.\n")
    desk.write("a.md", "# A\n\nYes.\n")

    await desk.ingest()

    assert set(desk.index.documents) == {"docs/a"}


async def test_a_link_that_leaves_the_folder_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Secret\n\nNo.\n")
    (desk.folder / "linked").symlink_to(outside)
    (desk.folder / "secret.md").symlink_to(outside / "secret.md")
    (desk.folder / "loop").symlink_to(desk.folder)
    desk.write("a.md", "# A\n\nYes.\n")

    result = await desk.ingest()

    assert set(desk.index.documents) == {"docs/a"}
    assert [source for source, _ in result.warned] == ["linked", "secret.md"]


async def test_a_link_inside_the_folder_is_read_unless_its_file_is_read_anyway(desk: Desk) -> None:
    hidden = desk.write(".data/config.md", "# Config\n\nYes.\n")
    seen = desk.write("real/a.md", "# A\n\nYes.\n")
    (desk.folder / "config.md").symlink_to(hidden)
    (desk.folder / "a.md").symlink_to(seen)

    await desk.ingest()

    assert set(desk.index.documents) == {"docs/config", "docs/real/a"}


async def test_broken_files_are_named_and_the_rest_goes_on(desk: Desk) -> None:
    desk.write("archive.pdf", b"PK\x03\x04" + bytes(100))
    desk.write("binary.md", b"\x7fELF\x00\x01\x02" * 50)
    desk.write("empty.md", b"")
    desk.write("lines.jsonl", '{"what": 1}\n' + line(passage_id="p", text="Fine."))
    desk.write("good.md", "# Good\n\nText.\n")

    result = await desk.ingest()

    assert dict(result.failed) == {
        "archive.pdf": "expected a PDF, found a zip archive",
        "binary.md": "expected text, found a binary file (a zero byte at 4)",
        "lines.jsonl:1": "expected the keys page_id, markdown; or passage_id, text; "
        "or unit_id, text; or id, content; found what",
    }
    assert set(desk.index.documents) == {"p", "docs/good"}
    assert result.warned == (("empty.md", "the document contains no text"),)


async def test_a_page_that_was_emptied_is_removed_and_reported(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    desk.write("a.md", "\n")

    result = await desk.ingest()

    assert (result.removed, result.failed) == (1, ())
    assert result.warned == (("a.md", "the document contains no text"),)


async def test_a_broken_line_removes_nothing_because_its_id_is_unknown(desk: Desk) -> None:
    desk.write("all.jsonl", line(passage_id="p", text="One.") + line(passage_id="q", text="Two."))
    await desk.ingest()
    desk.write("all.jsonl", line(passage_id="p", text="One.") + '{"passage_id": "q", "te\n')

    result = await desk.ingest()

    assert result.removed == 0
    assert set(desk.index.documents) == {"p", "q"}
    assert any("no documents were removed" in reason for _, reason in result.warned)


async def test_a_file_that_is_removed_or_cut_while_others_are_read_is_reported(desk: Desk) -> None:
    removed = desk.write("c.md", "# C\n\nThree.\n")
    cut = desk.write("d.pdf", print_pdf([["Four."]]))

    def change() -> None:
        removed.unlink(missing_ok=True)
        cut.write_bytes(cut.read_bytes()[:200])

    desk.index.before_put = change
    # The second one waits until the first one is written.
    desk.write("a.md", "# A\n\n" + "A sentence of five words. " * 24_000)
    desk.write("b.md", "# B\n\nTwo.\n")

    result = await desk.ingest()

    assert dict(result.failed) == {
        "c.md": "the file cannot be read: No such file or directory",
        "d.pdf": "the PDF is damaged: Failed to load document (PDFium: Data format error).",
    }
    assert set(desk.index.documents) == {"docs/a", "docs/b"}


@contextmanager
def without_rights_of_root() -> Iterator[Path]:
    """Provide an open folder, and in the meantime the rights of an ordinary user to the caller."""
    with TemporaryDirectory(dir="/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        user = os.geteuid()
        umask = os.umask(0o022)
        try:
            yield folder
        finally:
            os.seteuid(user)
            os.umask(umask)
            for inner in [*folder.rglob("*")]:
                inner.chmod(0o755)


async def test_what_may_not_be_read_is_reported_and_everything_beside_it_is_read(
    desk: Desk,
) -> None:
    with without_rights_of_root() as desk.folder:
        for name in ("a.md", "locked.md", "sub/index.md", "sub/b.md", "folder/c.md", "closed/d.md"):
            desk.write(name, f"Text of {name}.\n")
        desk.write("mail.eml", "Message-ID: <1@a>\n\nText.\n")
        for name in ("channels.json", "users.json", "general/2026-01-01.json"):
            desk.write(f"export/{name}", "[]")
        desk.write("pages.zip", b"PK")
        files = {"locked.md", "sub/index.md", "mail.eml", "export/general/2026-01-01.json"}
        files.add("pages.zip")
        for name in (*files, "folder"):
            (desk.folder / name).chmod(0)
        (desk.folder / "closed").chmod(0o444)
        os.seteuid(65_534 if os.geteuid() == 0 else os.geteuid())

        result = await desk.ingest()

        rules = f"{desk.folder}/closed/refdesk.toml cannot be read: Permission denied"
    assert dict(result.failed) == {
        **dict.fromkeys(files, "the file cannot be read: Permission denied"),
        "folder": "the folder cannot be listed: Permission denied",
        "closed/d.md": f"{rules}; it applies to 1 file",
    }
    names = {document.source for document in desk.index.documents.values()}
    assert names == {"a.md", "sub/b.md"}


async def test_files_that_are_replaced_after_they_were_found_cost_only_themselves(
    desk: Desk,
) -> None:
    secret = desk.folder.parent / "secret.md"
    secret.write_text("Secret.")
    names = ("w-pipe", "w-link", "w-room", "w-short")
    replaced = [desk.write(f"{name}.md", "Text.\n") for name in names]

    def replace() -> None:
        for path in replaced:
            path.unlink(missing_ok=True)
        os.mkfifo(replaced[0])
        replaced[1].symlink_to(secret)
        replaced[2].mkdir()
        replaced[3].write_bytes(b"")
        desk.index.before_put = lambda: None

    desk.index.before_put = replace
    # The second one waits until the first one is written, and the last ones wait for the second.
    desk.write("a.md", "# A\n\n" + "A sentence of five words. " * 24_000)
    for name in "bcdefz":
        desk.write(f"{name}.md", f"# {name}\n\nText.\n")

    result = await desk.ingest()

    assert dict(result.failed) == {
        "w-pipe.md": "expected a file, found a pipe",
        "w-link.md": "the link leaves the folder and was not followed",
        "w-room.md": "expected a file, found a folder",
    }
    assert dict(result.warned) == {"w-short.md": "the document contains no text"}
    assert set(desk.index.documents) == {f"docs/{name}" for name in "abcdefz"}


async def test_a_path_that_is_not_there_is_reported_and_removes_nothing(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    (desk.folder / "a.md").unlink()
    desk.folder.rmdir()

    result = await desk.ingest()

    assert result.failed == (
        (
            str(desk.folder),
            "the file or folder cannot be read: No such file or directory",
        ),
    )
    assert set(desk.index.documents) == {"docs/a"}


async def test_an_id_met_twice_is_reported_again_at_every_ingestion(desk: Desk) -> None:
    desk.write("all.jsonl", line(passage_id="p", text="One.") * 2)
    desk.write("more.jsonl", line(passage_id="p", text="Two."))

    first, second = await desk.ingest(), await desk.ingest()

    assert [source for source, _ in first.failed] == ["all.jsonl:2", "more.jsonl:1"]
    assert first.failed == second.failed
    assert "the id 'p' is already used by all.jsonl:1" in first.failed[0][1]
    assert desk.index.documents["p"].content == "One."


async def test_a_page_beside_one_whose_name_states_its_language_is_in_the_index(desk: Desk) -> None:
    desk.language = "de"
    desk.write("hours.md", "# Von zehn bis sechs\n")
    alone = await desk.ingest()
    desk.write("hours.de.md", "# Von neun bis sechs\n")

    both, again = await desk.ingest(), await desk.ingest()

    assert (alone.failed, both.failed, again.failed) == ((), (), ())
    assert again.unchanged == 2
    assert set(desk.index.documents) == {"docs/hours@de", "docs/hours.md@de"}


@pytest.mark.parametrize("language", ["de", "en"])
async def test_of_files_with_names_of_every_likeness_each_is_a_document(
    desk: Desk, language: str
) -> None:
    desk.language = language
    names = [f"hours.{end}" for end in ("md", "de.md", "en.md", "en-us.md", "html", "de.html")]
    names += ["hours.txt", "hours/index.md", "de/hours.md", "hours.md.txt", "hours.html.md"]
    names += ["api.json", "api.de.json"]
    for name in names:
        text = f"<p>Hours of {name} here.</p>"
        api = json.dumps({"openapi": "3.1.0", "info": {"description": f"API of {name}."}})
        desk.write(name, api if name.endswith("json") else text)

    first, second = await desk.ingest(), await desk.ingest()

    assert (first.failed, first.added) == ((), len(names))
    assert (second.failed, second.unchanged) == ((), len(names))


async def test_files_that_differ_only_in_their_suffix_are_all_in_the_index(desk: Desk) -> None:
    desk.write("names.txt", "Two.\n")
    desk.write("names.htm", "<p>Three.</p>")
    desk.write("names.txt.md", "Four.\n")
    alone = await desk.ingest()
    desk.write("names.html", "<p>One.</p>")

    result = await desk.ingest()

    assert (alone.failed, result.failed) == ((), ())
    assert {name: document.content for name, document in desk.index.documents.items()} == {
        "docs/names": "Three.",
        "docs/names.html": "One.",
        "docs/names.txt": "Four.",
        "docs/names.txt.txt": "Two.",
    }


async def test_an_id_met_in_two_folders_at_once_is_reported(desk: Desk) -> None:
    one = desk.write("one/all.jsonl", line(passage_id="p", text="One."))
    two = desk.write("two/all.jsonl", line(passage_id="p", text="Two."))

    result = await desk.ingest(one.parent, two.parent)

    assert [source for source, _ in result.failed] == ["all.jsonl:1"]
    assert desk.index.documents["p"].content == "One."


async def test_an_id_taken_over_from_another_folder_is_reported(desk: Desk) -> None:
    one = desk.write("one/all.jsonl", line(passage_id="p", text="One."))
    two = desk.write("two/all.jsonl", line(passage_id="p", text="Two."))
    await desk.ingest(one.parent)

    result = await desk.ingest(two.parent)

    assert result.changed == 1
    assert "replaces 'p'" in result.warned[0][1]


async def test_a_single_file_can_be_ingested_and_an_unknown_format_is_reported(desk: Desk) -> None:
    known, unknown = desk.write("a.txt", "Some text."), desk.write("b.pages", "PK")

    result = await desk.ingest(known, unknown)

    assert set(desk.index.documents) == {"a"}
    assert (result.failed, len(result.skipped)) == ((), 1)
    assert "open it and save it as .docx" in dict(result.skipped)["b.pages"]


async def test_a_source_or_address_that_tricks_is_only_a_harmless_label(desk: Desk) -> None:
    desk.write(
        "all.jsonl",
        line(id="a", content="Text.", source="../../etc/passwd", url="javascript:alert(1)")
        + line(id="b", content="Text.", source="C:\\..\\x.md", url="https://example.org/b#c"),
    )

    await desk.ingest()

    first, second = desk.index.documents["a"], desk.index.documents["b"]
    assert (first.source, first.url) == ("etc/passwd", None)
    assert (second.source, second.url) == ("C:/x.md", "https://example.org/b#c")


async def test_long_documents_are_embedded_in_bounded_batches(desk: Desk) -> None:
    desk.write("long.txt", "A sentence of five words. " * 8000)

    result = await desk.ingest()

    assert max(desk.embedder.batches) <= 256
    assert sum(desk.embedder.batches) == result.chunks > 256


@pytest.mark.slow
@pytest.mark.long
async def test_a_line_of_ten_million_characters_is_reported_and_cut(desk: Desk) -> None:
    desk.write("long.md", "word " * 2_000_000)
    desk.write("good.md", "# Good\n\nText.\n")

    result = await desk.ingest()

    chunks = desk.index.documents["docs/long"].chunks
    assert result.warned == (("long.md", "a line is longer than 1000000 characters"),)
    assert sum(len(chunk.text.split()) for chunk in chunks) == 2_000_000
    assert max(len(chunk.text.split()) for chunk in chunks) <= 75
    assert "docs/good" in desk.index.documents


async def test_progress_is_reported_in_plain_lines(desk: Desk) -> None:
    for number in range(150):
        desk.write(f"{number}.md", f"# Page {number}\n\nText.\n")

    await desk.ingest()

    assert desk.lines[0] == f"reading 150 files from {desk.folder}"
    assert desk.lines[1].startswith("100 of 150 files read")


async def test_a_new_rule_of_access_is_written_without_a_new_embedding(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nOne.\n")
    await desk.ingest()
    desk.embedder.batches.clear()
    desk.index.keeps_vectors = True
    desk.write("refdesk.toml", '[[documents]]\npath = "*"\ngroups = ["hr"]\n')

    result = await desk.ingest()

    assert (result.changed, desk.index.documents["docs/a"].groups) == (1, ("hr",))
    assert not any(desk.embedder.batches)

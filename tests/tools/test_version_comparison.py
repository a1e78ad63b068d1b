"""Two versions of many documents are compared: nothing that changed is left out of the result."""

from pathlib import Path

from knowledge.index.embedded import open_embedded
from knowledge.library.library import Library
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put
from tests.tools.conftest import Parts
from tools.calls import ToolCall, ToolCaller, ToolResult
from tools.catalog import make_builtin
from tools.executor import ToolExecutor

ADDED, CHANGED = 60, 5
LONG = " ".join(["A carrier keeps a record of every journey and shows it on request."] * 20)


async def compare(folder: Path) -> ToolResult:
    index = await open_embedded(folder / "index", identity())
    added = [
        document(f"new{number}@2025", LONG, title=f"Article {number}", stated_version="2025")
        for number in range(ADDED)
    ]
    changed = [
        document(
            f"old{number}@{version}",
            f"{LONG} The fee is {version} euros.",
            title=f"Rule {number}",
            stated_version=version,
            content_hash=version,
        )
        for number in range(CHANGED)
        for version in ("2024", "2025")
    ]
    await put(index, *added, *changed)
    parts = Parts(LevelSearcher(index, WordEmbedder()), Library(index))
    call = ToolCall(
        call_id="1",
        tool="compare_documents",
        arguments={"old": "2024", "new": "2025", "limit": 100},
    )
    found = await ToolExecutor(make_builtin(parts)).execute(call, ToolCaller(agent="reason"))
    await index.close()
    return found


async def test_every_change_is_named_also_where_the_texts_are_too_much(tmp_path: Path) -> None:
    found = await compare(tmp_path)

    assert isinstance(found.data, dict), "the result is small enough to be kept"
    changes = found.data["changes"]
    assert isinstance(changes, list)
    named = [(one["change"], one["document_id"]) for one in changes if isinstance(one, dict)]
    assert {name for kind, name in named if kind == "added"} == {
        f"new{number}@2025" for number in range(ADDED)
    }
    assert {name for kind, name in named if kind == "changed"} == {
        f"old{number}@2025" for number in range(CHANGED)
    }
    assert 0 < len(found.quoted) < ADDED


async def test_versions_in_folders_are_compared_page_by_page(tmp_path: Path) -> None:
    index = await open_embedded(tmp_path / "index", identity())
    pages = [
        document(
            f"act/{version}/article-{number}",
            f"Article {number} of {version}.",
            title=f"Article {number}",
            stated_version=version,
            content_hash=version,
        )
        for version, count in (("2024", 2), ("2025", 3))
        for number in range(count)
    ]
    await put(index, *pages)
    parts = Parts(LevelSearcher(index, WordEmbedder()), Library(index))
    call = ToolCall(call_id="1", tool="compare_documents", arguments={"old": "2024", "new": "2025"})

    found = await ToolExecutor(make_builtin(parts)).execute(call, ToolCaller(agent="reason"))

    await index.close()
    assert [line for line in found.text.splitlines() if not line.startswith(" ")] == [
        "3 changes, 0 unchanged",
        "removed: none",
        "added: Article 2",
        "changed: Article 0",
        "changed: Article 1",
    ]

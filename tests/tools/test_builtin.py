"""The built-in tools over a small library, each called as a model calls it."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.index.embedded import open_embedded
from tests.knowledge.searching.conftest import document, identity, put
from tests.tools.conftest import make_parts
from tools.builtin.calculator import compute
from tools.calls import CitedPassage, ToolCall, ToolCaller, ToolErrorType, ToolResult
from tools.catalog import ToolCatalog, make_builtin
from tools.errors import InvalidInput
from tools.executor import ToolExecutor
from tools.passages import FoundPassage, PassageList, ShowsText

READER = ToolCaller(agent="reason")
NAMED_BY_THE_CLIENT = (
    "search", "graph_search", "hierarchical_search", "expand_context", "bm25_search",
    "hybrid_search", "get_document_info", "compare_documents", "similarity_search",
    "assess_confidence", "definition_aligner", "get_document_list", "get_document_metadata",
    "classify_document", "search_regulatory_graph", "verify_citation", "summarize", "lookup",
    "calculator", "verify_compliance", "format_report", "expand_ctx", "compare_docs",
)  # fmt: skip


async def call(executor: ToolExecutor, tool: str, **arguments: Any) -> ToolResult:
    return await executor.execute(ToolCall(call_id="1", tool=tool, arguments=arguments), READER)


@pytest.mark.parametrize("name", NAMED_BY_THE_CLIENT)
def test_every_tool_of_the_client_is_found_by_its_name(catalog: ToolCatalog, name: str) -> None:
    assert catalog.find(name) is not None


async def test_the_description_of_a_document_has_its_summary_and_sections(
    executor: ToolExecutor,
) -> None:
    result = await call(executor, "get_document_info", document_id="weather")

    assert isinstance(result.data, dict)
    assert (result.data["title"], result.data["summary"]) == ("Weather", "The seasons in short.")
    assert result.data["sections"] == [{"heading_path": [], "characters": 41}]


def test_searches_by_different_methods_are_described_differently(catalog: ToolCatalog) -> None:
    names = ("search", "bm25_search", "similarity_search", "hierarchical_search", "graph_search")
    tools = [catalog.find(name) for name in names]

    assert len({tool.description for tool in tools if tool is not None}) == len(names)


@pytest.mark.parametrize(
    "name", ["search", "hybrid_search", "bm25_search", "similarity_search", "hierarchical_search"]
)
async def test_a_search_returns_passages_with_their_citations(
    executor: ToolExecutor, name: str
) -> None:
    result = await call(executor, name, query="fee that a carrier pays", limit=2)

    assert result.success
    assert result.citations[0].chunk_id == "alfa@2025#1"
    assert "[alfa@2025#1]" in result.text
    assert "150 euros" in result.text


async def test_wordings_of_a_search_are_fused_by_the_ranks_of_their_passages(
    executor: ToolExecutor,
) -> None:
    asked = {"query": "Omicron levy", "limit": 3}
    plain = await call(executor, "search", **asked)
    result = await call(executor, "search", **asked, wordings=["fee that a carrier pays"])

    wanted = "alfa@2025#1"
    ranks = [[citation.chunk_id for citation in searched.citations] for searched in (plain, result)]
    assert wanted in ranks[1][:2]
    assert len(ranks[1]) == len(set(ranks[1])) <= 3


async def test_a_report_is_formatted_in_parts_and_is_not_a_source(executor: ToolExecutor) -> None:
    parts = [
        {"heading": "Findings", "items": ["REQ-001 <b>lacks</b> a passage"]},
        {"heading": "Matrix", "rows": [["Id", "Status"], ["REQ-001"]]},
    ]

    made = await call(executor, "format_report", title="Review", parts=parts)
    wrong = await call(executor, "format_report", title="Review", parts=[])

    assert made.text.startswith("# Review\n\n## 1. Findings\n\n- REQ-001 \\<b\\>lacks")
    assert "## 2. Matrix\n\n| Id | Status |\n|---|---|\n| REQ-001 |  |" in made.text
    assert (made.citations, made.is_source) == ((), False)
    assert wrong.error_type is ToolErrorType.VALIDATION


async def test_a_person_finds_only_what_they_may_read(executor: ToolExecutor) -> None:
    outside = await call(executor, "lookup", name="Omega")
    board = replace(READER, groups=("board",))
    asked = ToolCall(call_id="2", tool="lookup", arguments={"name": "Omega"})
    inside = await executor.execute(asked, board)

    assert outside.citations == ()
    assert [citation.document_id for citation in inside.citations] == ["secret"]


async def test_a_graph_search_follows_a_reference_to_another_article(
    executor: ToolExecutor,
) -> None:
    result = await call(
        executor, "graph_search", query="What does a breach cost?", start=["alfa@2025#1"], limit=1
    )

    assert [citation.document_id for citation in result.citations] == ["penalties@2025"]
    assert "'article 83' is mentioned" in result.text


async def test_a_notice_leads_to_the_article_that_replaces_its_own(executor: ToolExecutor) -> None:
    result = await call(
        executor, "graph_search", query="keeping of books", start=["repeal@2025#0"], limit=1
    )

    assert [citation.document_id for citation in result.citations] == ["alfa@2025"]


async def test_a_graph_search_follows_a_name_that_two_passages_share(
    executor: ToolExecutor,
) -> None:
    result = await call(
        executor,
        "search_regulatory_graph",
        query="Where was the person who licensed the carriers born?",
        start=["alfa@2025#0"],
        limit=1,
    )

    assert [citation.document_id for citation in result.citations] == ["costa"]
    assert "'lorenzo costa' is in both" in result.text


async def test_a_search_finds_the_version_that_it_names(executor: ToolExecutor) -> None:
    newest = await call(executor, "search", query="How often does a carrier report?", limit=1)
    earlier = await call(
        executor, "search", query="How often does a carrier report?", version="2024", limit=1
    )

    assert [citation.version for citation in newest.citations] == ["2025"]
    assert [citation.version for citation in earlier.citations] == ["2024"]


async def test_a_name_means_its_newest_version(executor: ToolExecutor) -> None:
    result = await call(executor, "lookup", name="article 6")

    assert [citation.document_id for citation in result.citations] == ["alfa@2025"]


async def test_two_versions_are_compared_section_by_section(executor: ToolExecutor) -> None:
    result = await call(executor, "compare_documents", old="alfa@2024", new="alfa@2025")

    assert isinstance(result.data, dict)
    assert result.data["same"] == 1
    changes = [(change["change"], change["title"]) for change in result.data["changes"]]  # type: ignore[index, union-attr, call-overload]
    assert changes == [("changed", "Fees"), ("added", "Reports")]
    assert "- 100" in result.text
    assert "+ 150" in result.text


async def test_two_versions_of_all_documents_are_compared(executor: ToolExecutor) -> None:
    result = await call(executor, "compare_documents", old="2024", new="2025")

    assert [line for line in result.text.splitlines() if not line.startswith(" ")] == [
        "4 changes, 0 unchanged",
        "added: Article 83 Penalties",
        "removed: Article 9",
        "changed: Article 6 Scope of the Alfa Act > Fees",
        "changed: Article 6 Scope of the Alfa Act > Reports",
    ]
    texts = {passage_text.citation.document_id: passage_text.text for passage_text in result.quoted}
    assert "a fee of 100 euros" in texts["alfa@2024"]
    assert "punished with a fine" in texts["penalties@2025"]


async def test_a_section_and_a_document_are_read_as_they_stand(executor: ToolExecutor) -> None:
    section = await call(executor, "read_section", chunk_id="alfa@2025#1")
    document = await call(executor, "read_document", document_id="alfa@2025")
    beyond = await call(executor, "read_document", document_id="alfa@2025", page=2)
    hidden = await call(executor, "read_document", document_id="secret")

    assert "See Article 83 for breaches." in section.text
    assert [citation.chunk_id for citation in section.citations] == ["alfa@2025#1"]
    assert [citation.chunk_id for citation in document.citations] == [
        f"alfa@2025#{n}" for n in range(3)
    ]
    assert (beyond.error_type, hidden.error_type) == (ToolErrorType.VALIDATION,) * 2


async def test_the_context_of_a_passage_includes_its_neighbours(
    executor: ToolExecutor,
) -> None:
    result = await call(executor, "expand_context", chunk_ids=["alfa@2025#1"])

    assert [citation.chunk_id for citation in result.citations] == [
        f"alfa@2025#{n}" for n in range(3)
    ]
    assert "[alfa@2025#1]" in result.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("expand_context", {"chunk_ids": ["alfa@2025#99"]}),
        ("get_document_info", {"document_id": "no such document"}),
        ("summarize", {"document_id": "no such document"}),
        ("read_section", {"chunk_id": "alfa@2025#99"}),
        ("classify_document", {"document_id": "no such document"}),
        ("compare_documents", {"old": "1999", "new": "2025"}),
        ("calculator", {"expression": "__import__('os').getcwd()"}),
    ],
)
async def test_a_name_of_nothing_is_an_invalid_input(
    executor: ToolExecutor, tool: str, arguments: dict[str, Any]
) -> None:
    result = await call(executor, tool, **arguments)

    assert result.error_type is ToolErrorType.VALIDATION
    assert result.error is not None
    assert "expected" in result.error


async def test_documents_are_listed_and_described(executor: ToolExecutor) -> None:
    listed = await call(executor, "list_documents", version="2025")
    described = await call(executor, "get_document_metadata", document_id="alfa@2025")

    assert listed.text.startswith("3 documents\nalfa@2025: Article 6")
    assert '"heading_path":["Reports"]' in described.text


async def test_a_summary_quotes_and_cites(executor: ToolExecutor) -> None:
    result = await call(executor, "summarize", document_id="alfa@2025", about="euros", sentences=2)

    assert "A carrier pays a fee of 150 euros a year." in result.text
    assert "alfa@2025#1" in [citation.chunk_id for citation in result.citations]


@pytest.mark.parametrize(
    ("claim", "chunk_id", "verdict", "lacks"),
    [
        ("A carrier pays a fee of 150 euros a year.", "alfa@2025#1", "verbatim", []),
        ("The yearly fee of carriers is 250 euros.", "alfa@2025#1", "other_words", ["250"]),
        ("Carriers owe 150 euros each year.", "alfa@2025#1", "other_words", []),
        ("Nobody owes `150 euros` to anybody.", "alfa@2025#1", "other_words", []),
        ("A carrier pays a fee.", "alfa@2025#77", "missing", []),
    ],
)
async def test_a_citation_is_verified_by_rules(
    executor: ToolExecutor, claim: str, chunk_id: str, verdict: str, lacks: list[str]
) -> None:
    result = await call(executor, "verify_citation", claim=claim, chunk_id=chunk_id)

    assert isinstance(result.data, dict)
    assert (result.data["verdict"], result.data["not_in_passage"]) == (verdict, lacks)


async def test_a_document_is_classified(executor: ToolExecutor) -> None:
    result = await call(executor, "classify_document", document_id="alfa@2025")

    assert isinstance(result.data, dict)
    assert result.data["kind"] == "law or regulation"


async def test_a_definition_is_found_and_confidence_is_assessed(executor: ToolExecutor) -> None:
    defined = await call(executor, "definition_aligner", term="weather balloon")
    assessed = await call(executor, "assess_confidence", question="What does a carrier pay?")

    assert "no sentence defines" in defined.text
    assert isinstance(assessed.data, dict)
    assert assessed.data["quality"] in {"excellent", "good", "poor"}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.1 + 0.2", "0.3"),
        ("0.04 * 20_000_000", "800000"),
        ("max(3, 5) - -2 ** 2", "9"),
        ("round(10 / 3, 2)", "3.33"),
        ("7 // 2 + 7 % 2", "4"),
        ("sqrt(2) ** 2 < 3", ""),
        ("1 / 0", ""),
        ("9 ** 9 ** 9", ""),
        ("(" * 150 + "1" + ")" * 150, "1"),
        ("-" * 190 + "1", ""),
        ("True + 1", ""),
        ("'a' * 1000000", ""),
        ("[1, 2]", ""),
        ("abs", ""),
        ("sqrt(-1)", ""),
        ("max()", ""),
    ],
)
def test_arithmetic_is_computed_and_nothing_else(expression: str, value: str) -> None:
    if not value:
        if set(expression) == {"-", "1"}:
            assert compute(expression) in {1, -1}
            return
        with pytest.raises(InvalidInput):
            compute(expression)
        return
    assert f"{compute(expression).normalize():f}" == value


def test_no_tool_executes_text_as_code() -> None:
    from pathlib import Path

    import tools

    folder = Path(next(iter(tools.__path__)))
    called = {
        ast.unparse(node.func)
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    }

    assert not {"eval", "exec", "compile"} & called


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
    parts = make_parts(index)
    call = ToolCall(
        call_id="1",
        tool="compare_documents",
        arguments={"old": "2024", "new": "2025", "limit": 100},
    )
    result = await ToolExecutor(make_builtin(parts)).execute(call, ToolCaller(agent="reason"))
    await index.close()
    return result


async def test_every_change_is_named_also_where_the_texts_are_too_much(tmp_path: Path) -> None:
    result = await compare(tmp_path)

    assert isinstance(result.data, dict), "the result is small enough to be kept"
    changes = result.data["changes"]
    assert isinstance(changes, list)
    named = [
        (change["change"], change["document_id"]) for change in changes if isinstance(change, dict)
    ]
    assert {name for kind, name in named if kind == "added"} == {
        f"new{number}@2025" for number in range(ADDED)
    }
    assert {name for kind, name in named if kind == "changed"} == {
        f"old{number}@2025" for number in range(CHANGED)
    }
    assert 0 < len(result.quoted) < ADDED


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
    parts = make_parts(index)
    call = ToolCall(call_id="1", tool="compare_documents", arguments={"old": "2024", "new": "2025"})

    result = await ToolExecutor(make_builtin(parts)).execute(call, ToolCaller(agent="reason"))

    await index.close()
    assert [line for line in result.text.splitlines() if not line.startswith(" ")] == [
        "3 changes, 0 unchanged",
        "removed: none",
        "added: Article 2",
        "changed: Article 0",
        "changed: Article 1",
    ]


def test_a_section_of_several_passages_is_read_without_what_they_share() -> None:
    texts = ("A carrier pays a fee. It is due in May.", "It is due in May. A receipt is sent.")
    passages = tuple(
        FoundPassage(
            citation=CitedPassage(
                chunk_id=f"act#{n}", document_id="act", title="Act", heading_path=("Fees",)
            ),
            text=text,
        )
        for n, text in enumerate(texts)
    )

    assert ShowsText().render(PassageList(passages=passages)) == (
        "[act#0] [act#1] Act > Fees\nA carrier pays a fee. It is due in May. A receipt is sent."
    )

"""Checks the citations of a Markdown answer against the index."""

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import add_groups_argument, read_groups
from cli.printing import print_line, say_json, wrap
from deploy.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents.review.audit import CitablePassage, CitationAudit, ReadAnswer
    from knowledge.library.library import Library

EXIT_WRONG_CITATIONS = 7
LARGEST = 2_000_000
"""Maximum size of an answer in bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk audit`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the answer, in Markdown")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_groups_argument(parser)
    parser.epilog = (
        f"exit status: 0 every citation is correct, {EXIT_WRONG_CITATIONS} some are wrong, 1 error"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk audit`."""
    from agents.review.audit import read_citations

    answer = read_citations(_read_file(chosen.file))
    audit = asyncio.run(_audit(answer, read_groups(chosen.groups)))
    if chosen.json:
        say_json(
            {
                "file": str(chosen.file),
                "valid": audit.is_valid,
                "used_citations": list(audit.used_citations),
                "invalid_citations": list(audit.invalid_citations),
                **audit.model_dump(mode="json"),
            }
        )
    else:
        for line in _list_lines(audit):
            print_line(line)
    return 0 if audit.is_valid else EXIT_WRONG_CITATIONS


def _read_file(path: Path) -> str:
    if not path.is_file():
        raise CommandError(f"the Markdown file {str(path)!r} does not exist")
    if path.stat().st_size > LARGEST:
        raise CommandError(f"expected at most {LARGEST:,} bytes, found {path.stat().st_size:,}")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"the file is not valid UTF-8 at byte {error.start}") from None


async def _audit(answer: "ReadAnswer", groups: "Sequence[str]") -> "CitationAudit":
    from agents.review.audit import audit_citations, normalise_name
    from config.settings import load_settings
    from deploy.assembly.knowledge import open_knowledge
    from knowledge.library.library import Library

    wanted = {normalise_name(name) for claim in answer.claims for name in claim.names}
    async with open_knowledge(load_settings(), alone=True) as knowledge:
        passages = await _find_passages(Library(knowledge.index), wanted, groups)
    return audit_citations(answer, passages)


async def _find_passages(
    library: "Library", wanted: set[str], groups: "Sequence[str]"
) -> "list[CitablePassage]":
    """Return the passages in the documents that a citation refers to by id, title, file, or URL."""
    from agents.review.audit import find_cited_documents, list_citable_passages

    ids = find_cited_documents(await library.list_documents(groups), wanted)
    documents = await library.read(ids, groups) if ids else []
    return [passage for document in documents for passage in list_citable_passages(document)]


def _list_lines(audit: "CitationAudit") -> Iterator[str]:
    if not audit.citations:
        yield "the text has no citations"
    for citation in audit.citations:
        mark = "ok   " if citation.is_good else "WRONG"
        yield from wrap(f"{mark} {citation.label} {citation.claim}")
        if citation.place:
            yield from wrap(f"      {citation.place}")
        for problem in citation.problems:
            yield from wrap(f"      - {problem}")
    for sentence in audit.uncited:
        yield from wrap(f"note  sentence without a citation: {sentence}")
    for label in audit.unused:
        yield f"note  {label} is in the list of sources, but no sentence cites it"
    good = sum(citation.is_good for citation in audit.citations)
    yield f"{good} of {len(audit.citations)} citations are correct"

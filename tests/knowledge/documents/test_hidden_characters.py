"""Hidden and control characters, in every format and in every place of a document."""

import json
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest

from envelope.encoding import remove_hidden_characters
from knowledge import chunking, composing
from knowledge.document import Document
from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.isolation.preparation import prepare
from knowledge.rule_descriptions import Description
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.printing import file_of

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "obey me")
HIDDEN = f"\u202e\u202a{TAGS}\U000e0101\u2063\x1b[8m\x07\x9b"
ENTITIES = "&#x202e;&#xe0041;&#917569;&#x9b;&#27;"


def document_of(name: str, data: str | bytes) -> Document:
    path = PurePosixPath(name)
    content = data.encode() if isinstance(data, str) else data
    made = prepare(Item(name, content, name), path, locate(path, ()))
    return composing.compose(
        made.page, made.passages, made.by_rules, identity="d", language="en", content_hash=""
    )


def texts_of(document: Document) -> str:
    fields = (value for _, value in document)
    passages = (text for chunk in document.chunks for text in (chunk.text, *chunk.heading_path))
    embedded = (chunking.text_to_embed(document, chunk) for chunk in document.chunks)
    return "\n".join((*_strings(fields), *passages, *embedded))


def _strings(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, str))


def pdf() -> bytes:
    """Return a PDF whose letters A, B and C stand for hidden characters, as its font says."""
    mapped = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> "
        "endcodespacerange 3 beginbfchar <41> <202e> <42> <db40dc41> <43> <009b> endbfchar endcmap"
    )
    shown = "BT /F1 12 Tf 10 100 Td (Hours ABC open.) Tj ET"
    title = f"Ho{HIDDEN}urs".encode("utf-16").hex()
    return file_of(
        [
            "<< /Type /Catalog /Pages 2 0 R /Outlines << /Type /Outlines /Count 1 /First "
            f"<< /Title <{title}> /Dest [3 0 R /Fit] >> >> >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] "
            "/Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>",
            f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
            f"<< /Length {len(mapped)} >>\nstream\n{mapped}\nendstream",
        ]
    )


WRITTEN: dict[str, str | bytes] = {
    "page.md": f"---\ntitle: Ho{HIDDEN[:5]}urs\ndescription: a{TAGS}b\nkeywords: [k{TAGS}]\n"
    f"url: https://x.org/{TAGS}\n---\n# Ho{HIDDEN}urs {{#a{TAGS}}}\n\nOpen{HIDDEN} {ENTITIES}.\n\n"
    f"- `co{HIDDEN}de`\n\n```py{HIDDEN}\nif a:{HIDDEN}  # {HIDDEN}\n```\n\n"
    f"| a{HIDDEN} |\n|---|\n| b{ENTITIES} |\n\n<div>{ENTITIES}</div>\n",
    "page.mdx": f'# Ho{HIDDEN}urs\n\n<Tab title="x{HIDDEN}">\n\nOpen{HIDDEN} {ENTITIES}.\n\n'
    "</Tab>\n",
    "page.rst": f"Ho{HIDDEN}urs\n=====================================\n\nOpen{HIDDEN}.\n\n"
    f"::\n\n   code{HIDDEN}\n",
    "page.html": f"<html lang='e{TAGS}n'><title>Ho{HIDDEN}urs</title>"
    f"<meta name=description content='a{ENTITIES}b'><meta name=keywords content='k{ENTITIES}'>"
    f"<link rel=canonical href='https://x.org/{ENTITIES}'><h1 id='a{ENTITIES}'>H{ENTITIES}ours</h1>"
    f"<p>Open{HIDDEN}{ENTITIES}.<pre><code class='language-x{ENTITIES}'>c{ENTITIES}</code></pre>"
    f"<code>{ENTITIES}x</code><table><tr><td>{ENTITIES}b</table>",
    "page.txt": f"Hours{HIDDEN}\n\nOpen{HIDDEN}.\n",
    "page.pdf": pdf(),
    "document.jsonl": json.dumps(
        {
            "id": f"d{HIDDEN}",
            "source": f"s{HIDDEN}",
            "title": f"Ho{HIDDEN}urs",
            "crumbs": [f"a{HIDDEN}"],
            "description": f"a{HIDDEN}",
            "content": f"# Hours\n\nOpen{HIDDEN} {ENTITIES}",
            "summary": f"a{HIDDEN}",
            "keypoints": [f"a{HIDDEN}"],
            "keywords": [f"a{HIDDEN}"],
            "chunks": [f"Open{HIDDEN}", {"text": f"b{HIDDEN}"}],
            "url": f"https://x.org/{HIDDEN}",
            "lang": f"en{TAGS}",
        }
    ),
    "page.jsonl": json.dumps(
        {
            "page_id": f"p{HIDDEN}",
            "markdown": f"# Ho{HIDDEN}urs\n\nOpen{HIDDEN} {ENTITIES}",
            "headings": [{"text": "Hours", "anchor": f"h{HIDDEN}"}],
        }
    ),
    "passage.jsonl": json.dumps({"passage_id": f"p{HIDDEN}", "text": f"Open{HIDDEN}."}),
    "unit.jsonl": json.dumps({"unit_id": "u", "label": f"l{HIDDEN}", "text": f"Open{HIDDEN}."}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_no_format_brings_hidden_characters_into_the_index(name: str) -> None:
    document = document_of(name, WRITTEN[name])
    shown = texts_of(document)

    assert "pen" in shown
    assert remove_hidden_characters(shown) == shown
    assert not any(mark in shown for mark in ("\x07", "\x1b", "\x9b"))


async def test_names_of_files_and_folders_bring_no_hidden_characters(desk: Desk) -> None:
    desk.write(f"fol{TAGS}\u202eder/pa{HIDDEN}ge.md", "# Hours\n\nOpen.\n")
    desk.write(f"bro{HIDDEN}ken.md", b"\x00\x01")

    result = await desk.ingest()

    (document,) = desk.index.documents.values()
    assert document.source == "folder/pa[8mge.md"
    assert document.crumbs == ("Folder", "Hours")
    assert result.failed[0][0] == "bro[8mken.md"


def test_a_description_by_a_model_is_cleaned_too() -> None:
    path = PurePosixPath("a.md")
    made = prepare(Item("a.md", b"# A\n\nText.\n", "a.md"), path, locate(path, ()))
    said = Description(f"a{HIDDEN}", f"b{HIDDEN}", (f"c{HIDDEN}",), (f"d{HIDDEN}",))

    document = composing.compose(
        made.page, made.passages, said, identity="d", language="en", content_hash=""
    )

    assert (document.description, document.summary) == ("a[8m", "b[8m")
    assert (document.keypoints, document.keywords) == (("c[8m",), ("d[8m",))

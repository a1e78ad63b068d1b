import sys
from types import FrameType

import pytest

from citations.composed_addresses import read_stated_parts
from citations.links import Allowed, keep_links
from citations.sources import collect_allowed
from envelope.sources import SourceReference

API = """Send requests to https://api.acme.test/v1 or, for tests, to sandbox.acme.test:8443.
`GET /messages/{id}` returns a message. `GET /messages` takes the parameter `status`.
Exports: https://files.acme.test/exports/<name>.csv, https://api.acme.test/v1/keys?page[size]=5
"""
OTHER = "Upload files with POST /uploads/:name to https://upload.other.test."


def allow(*texts: str, typed: str = "") -> Allowed:
    """Return what an answer may show that cites one document for each text."""
    context, references = "", []
    for number, text in enumerate(texts, start=1):
        span = (len(context), len(context) + len(text))
        references.append(
            SourceReference(number=number, chunk_id=f"doc{number}#0", title="Docs", span=span)
        )
        context += text
    return collect_allowed(references, context, (typed,))


@pytest.mark.parametrize(
    "address",
    [
        "https://api.acme.test/v1/messages",
        "https://api.acme.test/v1/messages/m-42",
        "https://api.acme.test/v1/messages?status=sent",
        "https://sandbox.acme.test:8443/messages/{id}",
        "https://files.acme.test/exports/june.csv",
        "https://api.acme.test/v1/keys?page[size]=50",
        "https://api.acme.test",
    ],
)
def test_an_address_composed_from_one_cited_document_is_shown(address: str) -> None:
    code = f"```sh\ncurl -X GET '{address}' \\\n  -H 'a: b'\n```"

    assert keep_links(code, allow(API, OTHER)).text == code


@pytest.mark.parametrize(
    "address",
    [
        "https://api.acme.test/v1/uploads/a",
        "https://upload.other.test/messages",
        "https://api.acme.test/v1/accounts",
        "https://api.acme.test/v1/messages/a/b",
        "https://api.acme.test/v1/messages/../keys",
        "https://api.acme.test/v1/messages/a%2Fb",
        "https://api.acme.test/v1/messages?secret=hunter2",
        "https://api.acme.test/v1/messages?hunter2",
        "https://api.acme.test/v1/messages?status=sent&hunter2=a",
        "https://api.acme.test:8443/messages",
        "https://api.acme.test@evil.test/v1/messages",
        "https://evil.test/messages",
        "https://files.acme.test/exports/june.exe",
    ],
)
def test_any_other_address_is_removed_and_nothing_beside_it(address: str) -> None:
    code = f"```sh\necho 1\ncurl -X GET {address} | jq\n```"

    kept = keep_links(code, allow(API, OTHER))

    assert kept.text == code.replace(address, "[address removed]")
    assert kept.removed == (f"address: {address}",)


def test_the_cost_of_an_address_is_that_of_the_paths_that_fit_it() -> None:
    """Every path would be compared with every address of every draft."""
    stated = "\n".join(f"GET /items{number}/{{id}}/parts" for number in range(2_000))
    parts = read_stated_parts(f"Server: https://api.acme.test. {stated}")
    compared = 0

    def count(_frame: FrameType, event: str, _given: object) -> None:
        nonlocal compared
        compared += event == "call"

    sys.setprofile(count)
    try:
        is_stated = parts.composes("https://api.acme.test/items1999/7/parts")
        is_other = parts.composes("https://api.acme.test/items1999/7/others")
    finally:
        sys.setprofile(None)

    assert (is_stated, is_other) == (True, False)
    assert compared < 200


def test_sources_of_one_document_are_read_together() -> None:
    server, path = "The server is https://api.acme.test.", "Call GET /messages."
    references = [
        SourceReference(number=1, chunk_id="doc#0", title="Docs", span=(0, len(server))),
        SourceReference(
            number=2, chunk_id="doc#1", title="Docs", span=(len(server), len(server + path))
        ),
    ]
    text = "Call `https://api.acme.test/messages`. [2]"

    allowed = collect_allowed(references[1:], server + path, (), references)

    assert keep_links(text, allowed).text == text


@pytest.mark.parametrize(
    ("typed", "address", "is_shown"),
    [
        ("How do I reach localhost:3000?", "http://localhost:3000/health", True),
        ("It runs on `myhost:5000`.", "https://myhost:5000/a?b=c", True),
        ("Our server is api.intern.example.", "https://api.intern.example/v1", True),
        ("I use 10.0.0.5:8080, please", "http://10.0.0.5:8080/x", True),
        ("Мой сервер: сервер.рф", "https://сервер.рф/v1", True),
        ("How do I reach localhost:3000?", "http://localhost:4000/health", False),
        ("How do I reach localhost:3000?", "http://localhost:3000@evil.test/", False),
        ("What does setup.py do?", "http://setup.py/login", False),
        ("What about setup.py:12?", "http://setup.py:12/login", False),
        ("I unpacked archive.zip here", "https://archive.zip/a", False),
        ("Write to bob@evil.test", "https://evil.test/a", False),
        ("I have a server", "http://server/a", False),
        ("At 10:30 e.g. or v1.2", "http://10:30/a", False),
    ],
)
def test_only_a_host_that_is_a_whole_word_of_the_person_counts_as_typed(
    typed: str, address: str, is_shown: bool
) -> None:
    shown = keep_links(f"Run `fetch {address}`.", allow("Nothing.", typed=typed)).text

    assert shown == f"Run `fetch {address if is_shown else '[address removed]'}`."

"""A quotation of a message that another file has does not become a second source."""

from pathlib import PurePosixPath

from knowledge.documents.interchange.mail import find_replies
from tests.knowledge.documents.conftest import Desk, desk

__all__ = ["desk"]

QUESTION = b"Message-ID: <1@a>\nSubject: Couriers\n\nWhich courier do we use for Norway?\n"
ANSWER = (
    b"Message-Id: <2@a>\r\nReferences: <0@a>\r\n <1@a>\r\nSubject: Re: Couriers\r\n\r\n"
    b"We use Posten.\r\n\r\nOn Mon, 4 May 2026, Ann wrote:\r\n> Which courier do we use for Norway?"
)


def find(**messages: bytes) -> set[str]:
    return {str(path) for path in find_replies((PurePosixPath(p), m) for p, m in messages.items())}


def test_a_reply_is_found_by_the_ids_of_its_header() -> None:
    assert find(a=QUESTION, b=ANSWER) == {"b"}
    assert find(b=ANSWER) == set()
    assert find(a=QUESTION, b=ANSWER.replace(b"References", b"X-Other")) == set()
    assert find(a=b"Message-ID: <1@a>\nIn-Reply-To: <1@a>\n\n") == set()
    assert find(a=b"Subject: x\n\nMessage-ID: <1@a>", b=ANSWER) == set()


async def test_a_thread_of_files_has_every_sentence_once(desk: Desk) -> None:
    desk.write("b.eml", ANSWER)
    await desk.ingest()
    assert "Norway?" in desk.index.documents["docs/b.eml"].content

    desk.write("a.eml", QUESTION)
    await desk.ingest()

    contents = [document.content for document in desk.index.documents.values()]
    assert sum("Norway?" in content for content in contents) == 1
    assert sum("Posten" in content for content in contents) == 1

"""The progress of a review: plain lines, or one line that changes, at 80 columns."""

from broker.values import Fields, JournalEntry
from deploy.cli.commands.review import ReviewProgress
from deploy.cli.printing import ERASE_LINE, columns


def begin(*plan: tuple[str, str], branch: str = "") -> Fields:
    return {
        "target": "specialist",
        "branches": [name for name, _ in plan],
        "plan": [label for _, label in plan],
        **({"branch": branch} if branch else {}),
    }


def end(branch: str) -> Fields:
    return {"target": "return", "branch": branch}


STEPS = (
    begin(("w1", "compliance"), ("w2", "risk verifier")),
    begin(("w1/p1", "REQ-001 - REQ-012"), ("w1/p2", "REQ-013"), branch="w1"),
    end("w1/p1"),
    end("w2"),
    end("w1/p2"),
    end("w1"),
)


def show(*, is_terminal: bool, steps: tuple[Fields, ...] = STEPS) -> list[str]:
    written: list[str] = []
    progress = ReviewProgress(written.append, is_terminal=is_terminal)
    for fields in steps:
        progress.read(JournalEntry("routed", fields))
    progress.read(JournalEntry("finished", {}))
    progress.end()
    return written


def test_each_part_that_has_ended_is_a_line_elsewhere() -> None:
    assert show(is_terminal=False) == [
        "judged REQ-001 - REQ-012 (12 of 13 requirements)\n",
        "done: risk verifier\n",
        "judged REQ-013 (13 of 13 requirements)\n",
        "done: compliance\n",
    ]


def test_requirements_of_a_part_that_is_tried_once_more_are_counted_once() -> None:
    first, again = (begin((f"w1/{name}", "REQ-003 - REQ-010"), branch="w1") for name in "ab")

    written = show(is_terminal=False, steps=(first, end("w1/a"), again, end("w1/b")))

    assert written == ["judged REQ-003 - REQ-010 (8 of 8 requirements)\n"] * 2


def test_one_line_changes_on_a_terminal_and_is_erased_at_the_end() -> None:
    written = show(is_terminal=True)

    assert written[-1] == ERASE_LINE
    assert written[2] == f"{ERASE_LINE}… 12 of 13 requirements; compliance, risk verifier"
    assert all("\n" not in line for line in written)


def test_labels_of_documents_are_plain_and_fit_the_line() -> None:
    hostile = f"\x1b[31mArticle\x1b[0m\n{'long ' * 60}"
    steps = (begin(("w1", hostile)), end("w1"))

    for is_terminal in (True, False):
        for line in show(is_terminal=is_terminal, steps=steps):
            plain = line.removeprefix(ERASE_LINE).removesuffix("\n")
            assert "\x1b" not in plain
            assert columns(plain) < 80

"""What is quoted of tabs, of lists and of passages that share only a number with the question."""

import pytest

from llm.offline.respond import answer
from llm.tasks.respond import Inputs, Output, PromptSource

TABS = """Linux:

```bash
sudo apt install quillbox
```

macOS:

```bash
brew install quillbox
```

Windows: Download `setup.exe` and run it.

Python version: Quillbox needs Python 3.11."""
ALARM = """When the alarm sounds:
1. Close the door.
2. Read the display.
3. Call the engineer at 7702.

Never switch off the alarm before."""


def ask_offline(question: str, place: str, text: str) -> Output:
    source = PromptSource(number=1, chunk_id="a#1", place=place, language="en", text=text)
    return answer(Inputs(question=question, language="en", sources=(source,)))


@pytest.mark.parametrize(
    ("system", "quoted", "others"),
    [
        ("macOS", "brew install", ("apt", "setup.exe")),
        ("Linux", "sudo apt", ("brew", "setup.exe")),
        ("Windows", "setup.exe", ("brew", "apt")),
    ],
)
def test_of_several_tabs_the_one_is_quoted_that_the_question_names(
    system: str, quoted: str, others: tuple[str, ...]
) -> None:
    given = ask_offline(f"How do I install Quillbox on {system}?", "Installation", TABS)

    assert quoted in given.answer
    assert not any(other in given.answer for other in others)


def test_without_a_named_tab_each_tab_is_quoted_with_its_own_code() -> None:
    given = ask_offline("How do I install Quillbox?", "Installation", TABS)

    assert given.answer.index("Linux") < given.answer.index("apt install")
    assert given.answer.index("apt install") < given.answer.index("macOS")
    assert given.answer.index("macOS") < given.answer.index("brew install")


def test_the_lead_of_a_list_that_repeats_the_question_brings_the_whole_list() -> None:
    given = ask_offline("What do I do when the alarm sounds?", "Cold store > Alarm", ALARM)

    assert all(step in given.answer for step in ("Close the door", "Read the display", "7702"))


@pytest.mark.parametrize(
    ("question", "text", "status"),
    [
        ("How often does route 8 run?", "Aurora seats eight people every day.",
         "insufficient_context"),
        ("How often does route 8 run?", "Route 8 runs every ten minutes.", "answered"),
        ("How often does route 8 run?", "Route eight runs every ten minutes.", "answered"),
        ("May I bring 3 bags?", "Passengers may take three bags.", "answered"),
    ],
)  # fmt: skip
def test_a_spelled_number_is_not_the_number_of_a_name(
    question: str, text: str, status: str
) -> None:
    assert ask_offline(question, "Town", text).status == status


def test_the_notes_of_another_version_do_not_answer_for_the_one_that_is_named() -> None:
    question = "What changed in version 2.3.1?"

    other = ask_offline(question, "Release notes > Version 2.3", "The port changed to 8930.")
    own = ask_offline(question, "Release notes > Version 2.3.1", "The port changed to 8930.")

    assert other.status == "insufficient_context"
    assert "8930" in own.answer

"""`refdesk forget`: what it erases, what it says, and that the data folder holds no word of it."""

import ast
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cli.commands import replay
from cli.commands.review import EXIT_FINDINGS
from envelope.question import REPLAY, Question, copy_question
from records.record import Record
from records.store import Selection, connect_store
from tests.gateway.erasing.canary import files_with, make_canary
from tests.support.app_harness import EXAMPLES
from tests.support.command_line import Run, one_line

ASKING = {
    "desk",
    "desks",
    "make_channel",
    "open_desk",
    "run_answers",
    "run_chat_channel",
    "run_desk",
}
"""What a command imports to have questions answered."""
ASKED_HERE = {"ask", "replay", "review"}
CHANNELS = {"mcp", "serve", "slack", "telegram"}
"""They have channels, whose erasure `tests/gateway/erasing` covers."""
WITHOUT_TEXTS_OF_PEOPLE = {"demo", "evaluate"}
"""They ask questions of the product or of a file, in a Redis of their own that ends with them."""

pytestmark = [pytest.mark.slow, pytest.mark.redis]


def ask_about(served: Run, word: str) -> tuple[str, str]:
    """Ask about a word; return the ids of message and conversation."""
    text = f"How do I configure SMS routing rules for {word}?"
    message_id = served("ask", text, "--json").json["message_id"]
    journal = served("trace", message_id, "--json").json
    return message_id, journal[-1]["fields"]["conversation_id"]


def test_a_forgotten_conversation_stands_in_no_file_of_the_data_folder(
    served: Run, library: Path
) -> None:
    word = make_canary()
    message_id, _ = ask_about(served, word)
    assert files_with(library, word)

    result = served("forget", "--message", message_id, "--json")

    assert result.status == 0
    assert result.json["found"] is True
    assert (result.json["messages"], result.json["ended"]) == (1, 0)
    assert files_with(library, word) == []
    assert word not in served("trace", message_id).out


def test_an_unknown_conversation_has_a_separate_exit_status(served: Run) -> None:
    result = served("forget", "nobody-ever-said")

    assert result.status == 3
    assert "there is no data of the conversation 'nobody-ever-said'" in result.out
    assert served("forget", "nobody-ever-said", "--json").json["messages"] == 0


def test_a_conversation_is_forgotten_once_and_the_second_time_there_is_nothing(served: Run) -> None:
    message_id, conversation = ask_about(served, make_canary())

    first = served("forget", conversation)
    second = served("forget", conversation)

    assert (first.status, second.status) == (0, 3)
    assert "1 messages with replies and journals" in first.out
    assert "there is no data" in second.out
    assert served("forget", "--message", message_id).status == 3


def test_the_id_that_ask_got_is_the_id_to_forget(served: Run) -> None:
    served("ask", "--conversation", "holiday-7", "How do I configure SMS routing rules?")

    result = served("forget", "holiday-7")

    assert result.status == 0
    assert "the conversation 'cli/holiday-7' of default/default is erased" in result.out


def test_a_conversation_of_another_tenant_is_not_touched(served: Run) -> None:
    message_id, conversation = ask_about(served, make_canary())

    assert served("forget", conversation, "--tenant", "somebody-else").status == 3
    assert served("forget", conversation, "--assistant", "another").status == 3
    assert served("forget", conversation, "--channel", "slack").status == 3
    assert served("trace", message_id).status == 0
    assert "found 0" in one_line(
        served("forget", "--message", message_id, "--tenant", "somebody-else")
    )


def test_a_person_is_forgotten_with_every_conversation_that_has_a_record(
    served: Run, library: Path
) -> None:
    (mine, first), (other, second) = ask_about(served, make_canary()), ask_about(served, "x")
    record = Record("default", "default", first, mine, 1.0, 2.0, person="p1")
    with closing(connect_store(f"sqlite:///{library / 'records.sqlite3'}")) as store:
        store.prepare()
        store.write(
            [record, replace(record, conversation_id=second, message_id=other, person="p2")]
        )

        result = served("forget", "--person", "p1")

        assert result.status == 0
        assert "1 conversations of this person with default/default are erased" in result.out
        assert [item.person for item in store.find(Selection())] == ["p2"]
    assert served("forget", first).status == 3
    assert served("forget", "--person", "p1").status == 3
    assert served("trace", other).status == 0
    assert served("forget", "--person", "p2").status == 0


@pytest.mark.parametrize("words", [(), ("c1", "--message", "m1"), ("c1", "--person", "p1")])
def test_one_of_conversation_and_message_is_named(words: tuple[str, ...], served: Run) -> None:
    assert one_line(served("forget", *words)).startswith("specify the id of a conversation")


def test_the_trace_of_a_forgotten_message_says_that_it_was_forgotten(served: Run) -> None:
    message_id, conversation = ask_about(served, make_canary())
    served("forget", conversation)

    result = served("trace", message_id)

    assert result.status == 0
    assert f"{conversation} / {message_id} ended as " in result.out
    assert "its text was erased" in result.out
    assert "hops" not in result.out
    as_json = served("trace", message_id, "--json")
    assert (as_json.status, as_json.out) == (1, "")
    assert "its text was erased" in as_json.err
    assert served("trace", "nobody").status != 0


def find_asking_commands() -> set[str]:
    """Return the commands whose code asks a desk, so that texts of people are stored."""
    results = set()
    for path in sorted(Path(replay.__file__).parent.glob("[a-z]*.py")):
        tree = ast.parse(path.read_text())
        imported = {
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        if imported & ASKING:
            results.add(path.stem)
    return results


def test_every_command_that_asks_a_desk_is_covered_by_a_test_of_erasure() -> None:
    assert find_asking_commands() == {*ASKED_HERE, *CHANNELS, *WITHOUT_TEXTS_OF_PEOPLE}


def test_data_that_commands_stored_is_erased_with_its_conversation(
    served: Run, library: Path, tmp_path: Path
) -> None:
    """A replay of a replay is erased, too."""
    word = make_canary()
    message_id, conversation = ask_about(served, word)
    replayed = served("replay", message_id, "--json").json["replay"]
    again = served("replay", replayed["message_id"], "--json").json["replay"]
    assert word in served("trace", again["message_id"], "--json").out

    assert served("forget", conversation).status == 0

    assert files_with(library, word) == []
    assert word not in served("trace", replayed["message_id"]).out
    assert word not in served("trace", again["message_id"]).out


def test_a_forgotten_person_leaves_no_copy_of_a_question(served: Run, library: Path) -> None:
    """Also where the record of the original has expired."""
    word = make_canary()
    message_id, conversation = ask_about(served, word)
    original = Question(
        tenant="default", assistant="default", conversation_id=conversation, message_id=message_id
    )
    copied = copy_question(original, REPLAY)
    replayed = served("replay", message_id, "--json").json["replay"]
    assert replayed["conversation_id"] == copied.conversation_id
    record = Record(
        "default", "default", copied.conversation_id, replayed["message_id"], 1.0, 2.0,
        person="p1", channel=REPLAY, question=word,
    )  # fmt: skip
    with closing(connect_store(f"sqlite:///{library / 'records.sqlite3'}")) as store:
        store.prepare()
        store.write([record])

        assert served("forget", "--person", "p1").status == 0

        assert store.find(Selection(channel=REPLAY)) == []
    assert word not in served("trace", replayed["message_id"]).out


def test_a_forgotten_review_stands_in_no_file_of_the_data_folder(
    served: Run, library: Path, tmp_path: Path
) -> None:
    word = make_canary()
    contract = tmp_path / "contract.md"
    contract.write_text(f"# Contract\n\n## 1 Sale\n\nThe processor sells data to {word}.\n")
    law = EXAMPLES / "data_protection_review" / "law.md"
    reviewed = served(
        "review", str(contract), "--against", str(law), "--conversation", "r7", "--json"
    )
    assert reviewed.status == EXIT_FINDINGS, reviewed.err
    assert files_with(library, word)

    assert served("forget", "r7").status == 0

    assert files_with(library, word) == []

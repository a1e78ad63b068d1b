"""The `refdesk` command as a stranger meets it: its words, its errors, its exit statuses."""

import argparse
import io
import json
import re
import sys
from pathlib import Path

import pytest

from cli.commands import ask
from cli.main import EPILOG, VERBS
from deploy.assembly.runtime import ROLES
from envelope.role import Role
from tests.llm.test_key_check import VendorServer, vendor
from tests.support.app_harness import ROOT, refdesk
from tests.support.command_line import CLEAR, Run, one_line

pytestmark = pytest.mark.slow


# What it says of itself
def test_asking_and_talking_choose_a_way_with_the_same_arguments() -> None:
    chosen = ["--way", "swarm", "--strategy", "council", "--persona", "a tutor"]
    for add_arguments in (ask.add_arguments, ask.add_chat_arguments):
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        read = parser.parse_args(chosen)

        assert (read.way, read.strategy, read.persona) == ("swarm", "council", "a tutor")


def test_without_a_verb_the_command_lists_its_verbs(run: Run) -> None:
    result = run()

    assert result.status == 2
    for verb, purpose in VERBS.items():
        assert re.search(rf"^    {verb}\b", result.out, re.MULTILINE)
        assert purpose.split()[-1] in result.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_within_eighty_columns(
    verb: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    result = run(verb, "--help")

    assert result.status == 0
    assert f"usage: refdesk {verb}" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_a_mistyped_verb_is_answered_with_the_similar_one(run: Run) -> None:
    result = run("aks", "hello")

    assert result.status == 2
    assert "unknown command 'aks'; did you mean 'ask'?" in result.err


def test_a_mistyped_option_is_answered_with_the_similar_one(run: Run) -> None:
    result = run("ask", "--jsno", "hello")

    assert result.status == 2
    assert "unrecognized arguments: --jsno; did you mean '--json'?" in result.err


# Errors
def test_an_empty_question_is_refused_before_anything_starts(run: Run, elsewhere: Path) -> None:
    assert one_line(run("ask", " ")) == ("the message is empty: expected a question or a command")
    assert not (elsewhere / "data").exists()


def test_asking_without_documents_names_the_folder_and_how_to_read_some(
    run: Run, elsewhere: Path
) -> None:
    said = one_line(run("ask", CLEAR))

    assert f"there are no documents in {elsewhere / 'data'} yet" in said
    assert "refdesk ingest PATH" in said


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("REDIS_URL", "redis://127.0.0.1:1", "Redis does not respond"),
        ("QDRANT_URL", "http://127.0.0.1:1", "the Qdrant server at http://127.0.0.1:1"),
        ("REDIS_URL", "localhost", "REDIS_URL: expected an address with redis://"),
        ("SHARDS", "none", "SHARDS: Input should be a valid integer"),
        ("EMBEDDING_MODEL", "nobodys", "does not support the embedding model 'nobodys'"),
    ],
)
def test_a_setting_that_cannot_work_is_one_line(
    name: str, value: str, said: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    assert said in one_line(run("ask", CLEAR))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-5-mini@openai", "the model 'gpt-5-mini@openai' requires a key; set OPENAI_API_KEY"),
        ("llama@nobody", "found 'llama@nobody'"),
        ("llama", "found 'llama'"),
    ],
)
def test_a_model_that_cannot_be_asked_is_one_line(
    model: str, said: str, served: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEN_MODEL", model)

    assert said in one_line(served("ask", CLEAR))


def test_a_data_folder_that_cannot_be_made_is_one_line(
    run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "file").write_text("in the way")
    monkeypatch.setenv("REFDESK_DATA", str(elsewhere / "file"))

    assert str(elsewhere / "file") in one_line(run("status"))


def test_an_error_that_nobody_foresaw_is_one_line_and_its_place_a_debug_log(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cli.commands.status as verb

    def broken(_chosen: object) -> int:
        raise ExceptionGroup("tasks", [ZeroDivisionError("no shards")])

    monkeypatch.setattr(verb, "run", broken)

    quiet = one_line(run("status"))
    monkeypatch.setenv("LOG_LEVEL", "debug")
    log = run("status").err.splitlines()[0]

    assert quiet == "unexpected error, ZeroDivisionError: no shards"
    assert json.loads(log)["event"] == "command_failed"
    assert "ZeroDivisionError" in json.loads(log)["exception"]


def test_an_unknown_role_is_answered_with_the_known_ones(run: Run) -> None:
    error = one_line(run("worker", "--role", "lang", "porter"))

    assert "found porter" in error
    assert Role.AUGMENTATION.value in error


def test_a_folder_of_no_known_format_cannot_be_evaluated(run: Run, elsewhere: Path) -> None:
    assert "does not exist: 'nowhere'" in one_line(run("evaluate", "answers", "--data", "nowhere"))
    assert "expected" in one_line(run("evaluate", "retrieval", "--data", str(elsewhere)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("trace", "nobody"), "there is no journal of a message 'nobody'"),
        (("dead", "show", "1-1"), "the dead letter '1-1' does not exist"),
        (("dead", "retry"), "dead retry requires the id"),
        (("ingest", "nowhere"), "found nothing at nowhere"),
    ],
)
def test_a_missing_argument_file_is_reported_in_one_line(
    words: tuple[str, ...], said: str, run: Run
) -> None:
    assert said in one_line(run(*words))


# Reading
def test_broken_files_are_named_and_the_others_read(run: Run, elsewhere: Path) -> None:
    folder = elsewhere / "documents"
    folder.mkdir()
    (folder / "good.md").write_text("# Billing\n\nInvoices are sent on the first day.\n")
    (folder / "zip.pdf").write_bytes(b"PK\x03\x04" + bytes(64))
    (folder / "empty.md").write_text("")

    first, again = run("ingest", str(folder)), run("ingest", str(folder), "--json")

    assert (first.status, again.status) == (6, 6)
    assert "could not read zip.pdf: expected a PDF, found a zip archive" in first.out
    assert "documents: 1 added, 1 failed; " in first.out
    assert "reading 3 files" in first.err
    assert again.err == ""
    assert again.json | {"seconds": 0} == {
        "added": 0,
        "changed": 0,
        "unchanged": 1,
        "removed": 0,
        "failed": again.json["failed"],
        "warned": [{"source": "empty.md", "reason": "the document contains no text"}],
        "skipped": [],
        "left_out": [],
        "linked_hosts": [],
        "chunks": 0,
        "seconds": 0,
    }
    assert [sorted(failed) for failed in again.json["failed"]] == [["reason", "source"]]


def test_omitted_content_of_files_is_listed_with_count_and_reason(
    run: Run, elsewhere: Path
) -> None:
    folder = elsewhere / "documents"
    folder.mkdir()
    hidden = '<p style="display: none">nobody sees these five words</p>'
    for name in ("a", "b"):
        (folder / f"{name}.html").write_text(f"<h1>Page {name}</h1><p>Shown.</p>{hidden}")
    (folder / "old.rtf").write_text("{}")

    first = run("ingest", str(folder))
    listed = run("sources", "list", "--json").json["sources"][0]["left_out"]

    assert "left out" not in first.err
    assert "not in the index: 10 words left out: hidden from readers of the page" in first.out
    words, files = sorted(listed, key=lambda part: -part["count"])
    assert (words["what"], words["count"]) == ("word", 10)
    assert (files["what"], files["count"]) == ("file", 1)
    assert "save it as .docx" in files["reason"]


def test_files_with_the_same_problem_are_one_line_and_json_lists_each(
    run: Run, elsewhere: Path
) -> None:
    folder = elsewhere / "documents"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text("")
    (folder / "page.md").write_text("# Page\n\nA text.\n")

    result = run("ingest", str(folder))
    listed = run("ingest", str(folder), "--json").json["warned"]

    assert "note on a.md and 2 more: the document contains no text\n" in result.out
    assert "is empty" not in result.err
    assert [item["source"] for item in listed] == ["a.md", "b.md", "c.md"]


def test_a_folder_without_documents_is_said_to_be_one(run: Run, elsewhere: Path) -> None:
    (elsewhere / "documents").mkdir()

    result = run("ingest", "documents")
    expected = f"no documents found; nothing was added to {elsewhere / 'data'}\n"
    assert (result.status, result.out) == (0, expected)


# Asking
def test_an_answer_shows_its_sources_and_can_be_traced(served: Run) -> None:
    served("ask", CLEAR)  # the first answer says which model is in use
    result = served("ask", CLEAR)

    assert (result.status, result.err) == (0, "")
    assert "[1]" in result.out
    source = result.out.split("\nSources:\n")[1].splitlines()
    assert source[0] == "  Configure SMS routing rules"
    assert source[1] == "      routing/configure-routing-rules.md"
    assert re.fullmatch(r"    \[1\] \S.* \(#\S+\)", source[2])
    foot = re.search(
        r"\(answered, language en, found by the search, no model; message (\w+)\)", result.out
    )
    assert foot is not None
    assert max(map(len, result.out.replace("**", "").splitlines())) <= 80

    trace, entries = served("trace", foot[1]), served("trace", foot[1], "--json").json

    assert "manager: start, a question -> lang" in trace.out
    assert re.search(r"`- answered\n8 hops, [\d.]+ ms, \d+ model calls, 0\.000000 USD", trace.out)
    assert max(map(len, trace.out.splitlines())) <= 80
    assert [entry["kind"] for entry in entries[:2]] == ["accepted", "routed"]
    assert entries[-1]["kind"] == "finished"
    assert all(set(entry) == {"kind", "fields", "id", "at"} for entry in entries)


def test_the_whole_reply_is_json_on_standard_output_alone(
    served: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("What does error 4029 mean?\n"))
    monkeypatch.setenv("LOG_LEVEL", "debug")

    result = served("ask", "--json", "--conversation", "c-json", "--message", "m-json")

    reply = result.json
    assert (result.status, reply["outcome"], reply["answered_by"]) == (0, "answered", "search")
    assert (reply["conversation_id"], reply["message_id"]) == ("cli/c-json", "m-json")
    assert {"number", "title", "heading_path", "anchor", "path", "url"} <= set(reply["sources"][0])
    assert all(json.loads(line)["event"] for line in result.err.splitlines())


def test_a_message_id_of_two_conversations_needs_the_conversation(served: Run) -> None:
    for conversation in ("c-one", "c-two"):
        served("ask", "How do I change it?", "--conversation", conversation, "--message", "m-both")

    ambiguous = one_line(served("trace", "m-both"))

    assert "2 conversations have a message 'm-both' (cli/c-one, cli/c-two)" in ambiguous
    result = served("trace", "m-both", "--conversation", "c-two")
    assert result.out.startswith("cli/c-two / m-both\n")


@pytest.mark.parametrize(
    ("question", "status", "outcome"),
    [
        ("What will the weather be like tomorrow?", 4, "refused"),
        ("How do I change it?", 3, "clarification"),
    ],
)
def test_the_exit_status_follows_the_outcome(
    question: str, status: int, outcome: str, served: Run
) -> None:
    result = served("ask", question)

    assert (result.status, f"({outcome}, language en" in result.out) == (status, True)
    is_asked = "to answer this, run: refdesk ask --conversation ask-" in result.err
    assert is_asked == (outcome == "clarification")


def test_a_failed_question_says_where_to_look(served: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEADLINE_SECONDS", "1.5")
    served("workers", "pause", "response")

    try:
        result = served("ask", CLEAR, "--message", "m-failed")
    finally:
        served("workers", "resume", "response")

    assert (result.status, "(failed, language en, ended early: " in result.out) == (5, True)
    assert result.err.splitlines()[-1] == "refdesk: for details run: refdesk trace m-failed"


def test_the_status_has_a_line_for_every_role(served: Run) -> None:
    lines = ("role " + served("status").out.partition("role ")[2]).splitlines()
    roles = served("status", "--json").json["roles"]

    assert lines[0].split() == ["role", "depth", "in", "flight", "oldest", "dead", "consumers"]
    table = lines[1 : lines.index("")]
    assert [line.split()[0] for line in table] == [role["role"] for role in roles]
    assert {role["role"] for role in roles} == set(ROLES)
    assert set(roles[0]) == {"role", "depth", "in_flight", "oldest_seconds", "dead", "consumers"}


__all__ = ["vendor"]


@pytest.mark.redis
@pytest.mark.parametrize("vendor", [(401, "{}")], indirect=True)
@pytest.mark.parametrize(
    "words",
    [("worker", "--role", "response"), ("up",), ("serve", "--port", "0")],
    ids=lambda words: words[0],
)
def test_a_wrong_key_is_one_line_at_the_start(
    words: tuple[str, ...], vendor: VendorServer, tmp_path: Path
) -> None:
    result = refdesk(
        tmp_path, *words,
        gen_model="gpt-5-mini@openai", openai_api_key="sk-wrong", openai_base_url=vendor.url,
    )  # fmt: skip

    assert result.returncode == 1
    assert "set a valid key of openai" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "sk-wrong" not in result.stderr


def test_the_readme_names_every_command_and_every_exit_status() -> None:
    readme = (ROOT / "README.md").read_text()
    commands = readme.partition("\n## Commands\n")[2].partition("\n## ")[0]

    unnamed = {verb for verb in VERBS if re.search(rf"`refdesk {verb}\b", commands) is None}
    documented = re.findall(r"^\| (\d+) \|", commands, re.MULTILINE)

    assert unnamed == set()
    assert documented == re.findall(r"^ +(\d+)  ", EPILOG, re.MULTILINE)

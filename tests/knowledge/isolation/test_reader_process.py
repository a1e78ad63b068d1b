import os
import signal
import threading
from pathlib import PurePosixPath

import pytest

from knowledge.documents.errors import (
    NoTextError,
    ReaderDiedError,
    TooMuchMemoryError,
    TooSlowError,
    WrongFormatError,
)
from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from tests.knowledge.isolation.documents import ENDLESS, prepare


def test_a_document_comes_back_with_its_passages_and_what_the_rules_say(
    reader: ReaderProcess,
) -> None:
    made = prepare(reader, "guide.md", "# Hours\n\nWe open at nine.\n\n## Días\n\nAll.\n".encode())

    assert made.page.title == "Hours"
    assert [passage.text for passage in made.passages] == ["We open at nine.", "All."]
    assert made.passages[1].heading_path == ("Días",)
    assert made.by_rules.description == "We open at nine."


def test_a_faulty_document_is_reported_in_the_words_of_its_reader(
    reader: ReaderProcess,
) -> None:
    with pytest.raises(NoTextError, match="the document contains no text"):
        prepare(reader, "empty.md", b"\n")
    with pytest.raises(WrongFormatError, match="found a PNG image"):
        prepare(reader, "picture.pdf", b"\x89PNG....")


@pytest.mark.slow
def test_a_document_that_takes_too_long_is_given_up_and_the_next_is_read(
    hasty: ReaderProcess,
) -> None:
    with pytest.raises(TooSlowError, match="took longer than 1 s to read"):
        prepare(hasty, "endless.rst", ENDLESS)
    assert hasty.seconds_used == 1

    assert prepare(hasty, "next.md", b"# Next\n\nText.\n").page.title == "Next"


@pytest.mark.slow
def test_the_time_in_which_a_reader_waits_for_the_machine_is_none_of_its_document(
    reader: ReaderProcess,
) -> None:
    prepare(reader, "first.md", b"# First\n\nText.\n")
    os.kill(reader.process_id, signal.SIGSTOP)
    going_on = threading.Timer(1, os.kill, (reader.process_id, signal.SIGCONT))
    going_on.start()

    assert prepare(reader, "next.md", b"# Next\n\nText.\n").page.title == "Next"

    going_on.join()
    assert reader.seconds_used < 0.9


@pytest.mark.slow
def test_a_document_that_needs_too_much_memory_is_given_up_and_the_next_is_read() -> None:
    with ReaderProcess(ReadingLimits(memory_mb=64)) as reader:
        with pytest.raises(TooMuchMemoryError, match="needed more than 64 MB of memory"):
            prepare(reader, "large.txt", b"word " * 8_000_000)

        assert prepare(reader, "next.md", b"# Next\n\nText.\n").page.title == "Next"


@pytest.mark.slow
def test_a_reader_that_is_killed_costs_its_document_alone(reader: ReaderProcess) -> None:
    prepare(reader, "first.md", b"# First\n\nText.\n")
    killing = threading.Timer(0.2, os.kill, (reader.process_id, signal.SIGSEGV))
    killing.start()

    with pytest.raises(ReaderDiedError, match="was ended by SIGSEGV"):
        prepare(reader, "endless.rst", ENDLESS)

    killing.join()
    assert prepare(reader, "next.md", b"# Next\n\nText.\n").page.title == "Next"


@pytest.mark.slow
def test_a_document_whose_reader_was_killed_is_read_by_the_next_one(reader: ReaderProcess) -> None:
    prepare(reader, "first.md", b"# First\n\nText.\n")
    os.kill(reader.process_id, signal.SIGSTOP)
    killing = threading.Timer(0.2, os.kill, (reader.process_id, signal.SIGKILL))
    killing.start()

    assert prepare(reader, "next.md", b"# Next\n\nText.\n").page.title == "Next"

    killing.join()


@pytest.mark.slow
def test_one_process_reads_document_after_document_however_large_its_parent_is() -> None:
    with ReaderProcess(ReadingLimits(memory_mb=64)) as reader:
        first = reader.process_id
        for number in range(20):
            prepare(reader, "a.md", f"# A\n\nText {number}.\n".encode())

        assert reader.process_id == first


@pytest.mark.slow
def test_the_end_of_reading_is_reported_to_whoever_waits_for_its_start() -> None:
    failures: list[Exception] = []

    def read() -> None:
        try:
            prepare(reader, "a.md", b"# A\n\nText.\n")
        except ReaderDiedError as error:
            failures.append(error)

    with ReaderProcess(ReadingLimits()) as reader:
        waiting = threading.Thread(target=read)
        waiting.start()
    waiting.join()

    assert [str(error) for error in failures] == ["reading has ended"]


@pytest.mark.slow
def test_an_export_that_needs_too_much_memory_is_given_up_and_crashes_nothing() -> None:
    export = b'{"articles":[' + b'{"a":1},' * 1_000_000 + b"{}]}"
    path = PurePosixPath("export.json")
    with ReaderProcess(ReadingLimits(memory_mb=64)) as reader:
        with pytest.raises(TooMuchMemoryError, match="needed more than 64 MB of memory"):
            reader.split(path, export, locate(path, ()))

        assert prepare(reader, "next.md", b"# Next\n\nText.\n").page.title == "Next"


@pytest.mark.slow
def test_the_reader_knows_no_secrets_and_nobody_reads_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-desk")
    with ReaderProcess(ReadingLimits()) as reader:
        prepare(reader, "a.md", b"# A\n\nText.\n")
        try:
            with open(f"/proc/{reader.process_id}/environ", "rb") as file:
                environment = file.read()
        except PermissionError:
            return
    assert os.getuid() == 0, "a process of the same user could read the memory of the reader"
    assert b"PATH=" in environment
    assert b"secret-of-the-desk" not in environment


@pytest.mark.slow
def test_waiting_callers_are_notified_when_reading_ends() -> None:
    failures: list[Exception] = []

    def read() -> None:
        try:
            prepare(reader, "endless.rst", ENDLESS)
        except ReaderDiedError as error:
            failures.append(error)

    with ReaderProcess(ReadingLimits()) as reader:
        prepare(reader, "a.md", b"# A\n\nText.\n")
        waiting = threading.Thread(target=read)
        waiting.start()
        pid = reader.process_id
    waiting.join()

    assert len(failures) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ReaderDiedError, match="reading has ended"):
        prepare(reader, "b.md", b"# B\n\nText.\n")


def test_an_index_page_is_asked_for_its_title_alone(reader: ReaderProcess) -> None:
    path = PurePosixPath("README.md")
    item = Item("README.md", b"# All of it\n\nText.\n", "README.md")

    assert reader.title(item, path, locate(path, ())) == "All of it"


def test_a_reader_that_ends_before_it_is_ready_is_started_again() -> None:
    with ReaderProcess(ReadingLimits()) as reader:
        os.kill(reader.process_id, signal.SIGKILL)

        assert prepare(reader, "next.md", b"# Next\n\nText.\n").page.title == "Next"

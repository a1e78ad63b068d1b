import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from records.record import Record
from records.store import (
    RecordStore,
    RecordsUnavailableError,
    RecordsUrlError,
    Selection,
    connect_store,
)

RECORD = Record(
    tenant="acme",
    assistant="desk",
    conversation_id="c1",
    message_id="m1",
    accepted_at=1_000.0,
    ended_at=1_002.5,
    channel="http",
    person="p-7",
    way="search",
    language="de",
    question="Wie viele Tage?",
    outcome="answered",
    answer="30 Tage [1].",
    sources=({"number": 1, "title": "Urlaub"},),
    quality=0.9,
    models=("small@house",),
    cost_usd=Decimal("0.00012"),
    seconds=2.5,
    stage_seconds={"response": 1.5},
    steps=({"kind": "accepted", "at": 0.0},),
)
OTHER = replace(RECORD, assistant="shop", message_id="m2", ended_at=2_000.0, outcome="refused")


def test_a_record_is_read_as_it_was_written(store: RecordStore) -> None:
    store.write([RECORD, OTHER])

    assert store.get(RECORD.id) == RECORD
    assert store.get(replace(RECORD, message_id="m9").id) is None


def test_a_record_that_is_written_twice_is_there_once_and_keeps_its_rating(
    store: RecordStore,
) -> None:
    store.write([RECORD])
    assert store.rate(RECORD.id, "down", "too short")

    store.write([replace(RECORD, seconds=3.0)])

    (found,) = store.find(Selection())
    assert found == replace(RECORD, seconds=3.0, rating="down", rating_reason="too short")


def test_records_are_selected_by_assistant_time_outcome_and_text(store: RecordStore) -> None:
    store.write([RECORD, OTHER])

    def ids(**wanted: object) -> list[str]:
        return [one.message_id for one in store.find(Selection(**wanted))]  # type: ignore[arg-type]

    assert ids() == ["m2", "m1"]
    assert ids(assistants=(("acme", "desk"),)) == ["m1"]
    assert ids(assistants=()) == []
    assert ids(since=1_500.0) == ["m2"]
    assert ids(until=1_500.0) == ["m1"]
    assert ids(outcome="refused") == ["m2"]
    assert ids(text="WIE VIELE") == ["m2", "m1"]
    assert ids(text="100%_") == []


def test_pages_of_records_follow_each_other(store: RecordStore) -> None:
    store.write([replace(RECORD, message_id=f"m{at}", ended_at=float(at)) for at in range(5)])

    pages = [store.find(Selection(), offset=at, limit=2) for at in (0, 2, 4)]

    assert [[one.message_id for one in page] for page in pages] == [
        ["m4", "m3"], ["m2", "m1"], ["m0"],
    ]  # fmt: skip


def test_values_that_are_too_long_for_a_column_are_cut_and_not_refused(store: RecordStore) -> None:
    store.write([replace(RECORD, reason="r" * 5_000, answer="a\0b" * 10_000)])

    found = store.get(RECORD.id)

    assert found is not None
    assert found.reason == "r" * 128
    assert found.answer == "ab" * 10_000


def test_old_records_of_an_assistant_are_deleted_and_those_of_others_stay(
    store: RecordStore,
) -> None:
    store.write([RECORD, replace(OTHER, ended_at=1_002.5)])

    assert store.delete_older(1_500.0, ("acme", "desk")) == 1

    assert [one.assistant for one in store.find(Selection())] == ["shop"]


def test_two_processes_may_prepare_the_same_database(store: RecordStore) -> None:
    store.write([RECORD])

    store.prepare()

    assert store.get(RECORD.id) == RECORD


def test_tables_of_a_newer_release_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite3"
    store = connect_store(f"sqlite:///{path}")
    store.prepare()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()

    with pytest.raises(RecordsUnavailableError, match="9999"):
        store.prepare()

    store.close()


def test_a_forgotten_conversation_leaves_no_word_in_the_files(tmp_path: Path) -> None:
    store = connect_store(f"sqlite:///{tmp_path / 'records.sqlite3'}")
    store.prepare()
    store.write([replace(RECORD, answer="canary-4711 " * 300), OTHER])

    assert store.forget(RECORD.id) == 1

    assert store.get(OTHER.id) == OTHER
    assert [path.name for path in tmp_path.iterdir() if b"canary" in path.read_bytes()] == []
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    store = connect_store(f"sqlite:///{tmp_path / 'data' / 'records.sqlite3'}")
    store.prepare()
    store.write([RECORD])

    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "data").iterdir()}

    assert modes == {0}
    store.close()


@pytest.mark.parametrize("url", ["mysql://host/name", "nonsense", "http://host/name"])
def test_an_address_of_no_use_is_refused_with_what_was_expected(url: str) -> None:
    with pytest.raises(RecordsUrlError, match="expected sqlite:///PATH or postgresql://"):
        connect_store(url)


def test_a_server_that_does_not_answer_is_named_as_such_without_the_password() -> None:
    store = connect_store("postgresql://desk:secret-word@127.0.0.1:9/records")

    with pytest.raises(RecordsUnavailableError) as raised:
        store.prepare()

    assert "secret-word" not in str(raised.value)

import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, event

from records.record import Record
from records.store import (
    PersonFigures,
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
    person_name="ada",
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

    (record,) = store.find(Selection())
    assert record == replace(RECORD, seconds=3.0, rating="down", rating_reason="too short")


def test_records_are_selected_by_assistant_time_outcome_and_text(store: RecordStore) -> None:
    store.write([RECORD, OTHER])

    def ids(**wanted: object) -> list[str]:
        return [record.message_id for record in store.find(Selection(**wanted))]  # type: ignore[arg-type]

    assert ids() == ["m2", "m1"]
    assert ids(assistants=(("acme", "desk"),)) == ["m1"]
    assert ids(assistants=()) == []
    assert ids(since=1_500.0) == ["m2"]
    assert ids(until=1_500.0) == ["m1"]
    assert ids(outcome="refused") == ["m2"]
    assert ids(text="WIE VIELE") == ["m2", "m1"]
    assert ids(text="100%_") == []


def test_people_are_counted_and_found_with_their_conversations(store: RecordStore) -> None:
    others = [
        replace(RECORD, message_id="m3", conversation_id="c2", ended_at=3_000.0),
        replace(RECORD, message_id="m4", person="p-8", person_name="", ended_at=4_000.0),
        replace(RECORD, message_id="m5", person="", ended_at=5_000.0),
    ]
    store.write([RECORD, OTHER, *others])
    store.rate(RECORD.id, "down", "")
    desk = Selection(assistants=(("acme", "desk"),))

    everybody = store.list_people(Selection())

    grace = PersonFigures(
        "p-8", "", messages=1, conversations=1, answered=1, asked_back=0, refused=0, failed=0, up=0,
        down=0, languages=1, last_at=4_000.0,
    )  # fmt: skip
    ada = PersonFigures(
        "p-7", "ada", messages=3, conversations=3, answered=2, asked_back=0, refused=1, failed=0,
        up=0, down=1, languages=1, last_at=3_000.0,
    )  # fmt: skip
    assert everybody == [grace, ada]
    assert store.list_people(desk, person="p-7") == [
        replace(ada, messages=2, conversations=2, answered=2, refused=0)
    ]
    assert store.list_people(Selection(), offset=1, limit=5) == everybody[1:]
    questions = store.find_conversations_of("p-7", desk)
    assert sorted(question.conversation_id for question in questions) == ["c1", "c2"]


def test_pages_of_records_follow_each_other(store: RecordStore) -> None:
    store.write([replace(RECORD, message_id=f"m{at}", ended_at=float(at)) for at in range(5)])

    pages = [store.find(Selection(), offset=at, limit=2) for at in (0, 2, 4)]

    assert [[record.message_id for record in page] for page in pages] == [
        ["m4", "m3"], ["m2", "m1"], ["m0"],
    ]  # fmt: skip


def test_values_that_are_too_long_for_a_column_are_cut_and_not_refused(store: RecordStore) -> None:
    store.write([replace(RECORD, reason="r" * 5_000, answer="a\0b" * 10_000)])

    record = store.get(RECORD.id)

    assert record is not None
    assert record.reason == "r" * 128
    assert record.answer == "ab" * 10_000


def test_old_records_of_an_assistant_are_deleted_and_those_of_others_stay(
    store: RecordStore,
) -> None:
    store.write([RECORD, replace(OTHER, ended_at=1_002.5)])

    assert store.delete_older(1_500.0, ("acme", "desk")) == 1

    assert [record.assistant for record in store.find(Selection())] == ["shop"]


def test_two_processes_may_prepare_the_same_database(store: RecordStore) -> None:
    store.write([RECORD])

    store.prepare()

    assert store.get(RECORD.id) == RECORD


def test_processes_that_start_together_make_the_tables_of_a_new_file_once(tmp_path: Path) -> None:
    stores = [connect_store(f"sqlite:///{tmp_path}/records.sqlite3") for _ in range(4)]

    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(RecordStore.prepare, stores))

    stores[0].write([RECORD])
    assert stores[1].get(RECORD.id) == RECORD


def test_a_process_that_dies_while_it_makes_the_tables_leaves_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/records.sqlite3"
    dying, store = create_engine(url), connect_store(url)

    @event.listens_for(dying, "before_cursor_execute")
    def die(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("CREATE INDEX"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RecordStore(dying).prepare()

    store.prepare()
    store.write([RECORD])


def test_answered_questions_are_divided_and_unresolved_ones_are_about_the_topic(
    store: RecordStore,
) -> None:
    kinds = {
        "written": {},
        "passages": {"answered_by": "search"},
        "refused": {"outcome": "refused", "reason": "insufficient_context"},
        "foreign": {"outcome": "refused", "reason": "out_of_scope"},
        "greeting": {"way": "courtesy"},
    }
    store.write(replace(RECORD, message_id=name, **more) for name, more in kinds.items())  # type: ignore[arg-type]
    store.write([replace(RECORD, message_id="down")])
    store.rate(replace(RECORD, message_id="down").id, "down", "")

    def ids(outcome: str) -> set[str]:
        wanted = Selection(outcome=outcome, asks=True)
        message_ids = {record.message_id for record in store.find(wanted)}
        assert len(message_ids) == store.count(wanted)
        return message_ids

    assert ids("written") == {"written", "down"}
    assert ids("passages") == {"passages"}
    assert ids("unresolved") == {"refused", "down"}
    assert "greeting" not in ids("")


def test_a_request_for_a_person_is_marked_as_done(store: RecordStore) -> None:
    store.write([replace(RECORD, reason="person"), OTHER])

    assert store.close_request(RECORD.id)
    assert not store.close_request(RECORD.id)
    assert not store.close_request(OTHER.id)

    assert store.find(Selection(reason="person")) == []


def test_earlier_greetings_and_commands_get_ways_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite3"
    store = connect_store(f"sqlite:///{path}")
    store.prepare()
    rows = {"hello": "essence.courtesy", "help": "start.command", "asked": "essence.completed"}
    store.write(
        replace(RECORD, message_id=name, steps=({"kind": "routed", "row": row},))
        for name, row in rows.items()
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
        connection.commit()

    store.prepare()

    ways = {record.message_id: record.way for record in store.find(Selection())}
    assert ways == {"hello": "courtesy", "help": "command", "asked": "search"}
    store.close()


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


@contextmanager
def operating(url: str) -> Iterator[Connection]:
    """Provide an operator's connection."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def new_database(postgres_url: str) -> Iterator[str]:
    """A database without tables, where the user `reader` has no rights."""
    with operating(postgres_url) as operator:
        operator.exec_driver_sql("CREATE DATABASE rights")
        operator.exec_driver_sql("CREATE ROLE reader LOGIN")
        yield postgres_url.replace("/postgres?", "/rights?")
        operator.exec_driver_sql("DROP DATABASE rights WITH (FORCE)")
        operator.exec_driver_sql("DROP ROLE reader")


@pytest.mark.slow
def test_missing_rights_and_tables_delay_records_and_refuse_none(new_database: str) -> None:
    with (
        closing(connect_store(new_database.replace("refdesk@", "reader@"))) as store,
        closing(connect_store(new_database)) as owned,
        operating(new_database) as operator,
    ):
        with pytest.raises(RecordsUnavailableError, match="permission denied"):
            store.prepare()
        with pytest.raises(RecordsUnavailableError, match="does not exist"):
            store.write([RECORD])
        owned.prepare()
        operator.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")

        store.prepare()
        assert store.find(Selection()) == []
        for change in (lambda: store.write([RECORD]), lambda: store.forget(RECORD.id)):
            with pytest.raises(RecordsUnavailableError, match="permission denied"):
                change()
        operator.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader")
        store.write([RECORD])

        assert store.forget(RECORD.id) == 1


@pytest.mark.parametrize("url", ["mysql://host/name", "nonsense", "http://host/name"])
def test_an_invalid_address_is_rejected_with_the_expected_form(url: str) -> None:
    with pytest.raises(RecordsUrlError, match="expected sqlite:///PATH or postgresql://"):
        connect_store(url)


def test_a_server_that_does_not_answer_is_named_as_such_without_the_password() -> None:
    store = connect_store("postgresql://desk:secret-word@127.0.0.1:9/records")

    with pytest.raises(RecordsUnavailableError) as raised:
        store.prepare()

    assert "secret-word" not in str(raised.value)

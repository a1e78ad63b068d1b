"""Stores records in SQLite (in the data folder) or PostgreSQL.

All calls block; callers run them in threads.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    case,
    create_engine,
    delete,
    event,
    func,
    insert,
    make_url,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from envelope.question import COPYING, Question, list_copies
from knowledge.sections import document_of
from records.record import COMMAND, COURTESY, PERSON, PERSON_DONE, Record

ID = ("tenant", "assistant", "conversation_id", "message_id")
"""The columns that identify a message."""
PAGE = 50
"""Records per page."""
SEARCH = "search"
"""The value of `answered_by` for passages that are shown without a model."""
OUT_OF_SCOPE = "out_of_scope"
UNRESOLVED = ("clarification", "refused", "failed")
"""The outcomes of unresolved questions."""
_JSON_COLUMNS = ("sources", "models", "stage_seconds", "steps", "nearest", "groups")
_TIMEOUT_SECONDS = 10.0
_EXPECTED = "sqlite:///PATH or postgresql://HOST/NAME"

metadata = MetaData()
messages = Table(
    "messages",
    metadata,
    *(Column(name, String(128), primary_key=True) for name in ID),
    Column("accepted_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False, index=True),
    Column("channel", String(64), nullable=False),
    Column("person", String(128), nullable=False),
    Column("person_name", String(128), nullable=False),
    Column("way", String(64), nullable=False),
    Column("language", String(16), nullable=False),
    Column("question", Text, nullable=False),
    Column("canonical", Text, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("reason", String(128), nullable=False),
    Column("answered_by", String(32), nullable=False),
    Column("answer", Text, nullable=False),
    Column("sources", Text, nullable=False),
    Column("quality", Float),
    Column("judge", String(128), nullable=False),
    Column("models", Text, nullable=False),
    Column("model_calls", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_usd", String(40)),
    Column("seconds", Float, nullable=False),
    Column("stage_seconds", Text, nullable=False),
    Column("steps", Text, nullable=False),
    Column("rating", String(8), nullable=False),
    Column("rating_reason", Text, nullable=False),
    Column("nearest", Text, nullable=False),
    Column("groups", Text, nullable=False),
)
"""One row for each ended message; lists and objects are JSON, costs are decimals as text."""


gap_questions = Table(
    "gap_questions",
    metadata,
    *(Column(name, String(128), primary_key=True) for name in ID),
    Column("model", String(200), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("gap_id", String(32), nullable=False, index=True),
)
"""The questions in gaps, with their vectors and their gaps."""
gaps = Table(
    "gaps",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(128), nullable=False),
    Column("assistant", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
)
"""The gaps; their texts are those of their questions."""
verified_answers = Table(
    "verified_answers",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(128), nullable=False),
    Column("assistant", String(128), nullable=False),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("sources", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
)
"""The verified answers; `sources` is JSON."""
marked_questions = Table(
    "marked_questions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(128), nullable=False),
    Column("assistant", String(128), nullable=False),
    Column("question", Text, nullable=False),
    Column("expected", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)
"""The questions that the owner marked as tests; `expected` is JSON."""
checks = Table(
    "checks",
    metadata,
    Column("tenant", String(128), primary_key=True),
    Column("assistant", String(128), primary_key=True),
    Column("source", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("result", Text, nullable=False),
)
"""The last check of each source; `result` is JSON, without the texts of recorded questions."""
_OWNED = (gaps, gap_questions, verified_answers, marked_questions)
"""The tables with data that the owner created."""


class RecordsUnavailableError(Exception):
    """The records database does not respond."""


class RecordsUrlError(ValueError):
    """`RECORDS_URL` is not the URL of a supported database."""


class RecordRefusedError(Exception):
    """The database rejects the values of a record."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects which records to read; an empty value selects all. Times are in Unix seconds.

    `assistants` contains pairs of tenant and assistant; None selects all. `text` must occur in the
    question or answer (case-insensitive); `document` is the ID of a cited document. The outcome
    `answered` is divided into `written` and `passages`; `unresolved` selects questions within the
    scope that were not answered or were rated down. `asks` excludes messages that are not
    questions, such as greetings. Questions repeated by the owner or a replay are selected only by
    their channel or with `includes_copies`.
    """

    assistants: tuple[tuple[str, str], ...] | None = None
    since: float = 0.0
    until: float = 0.0
    outcome: str = ""
    reason: str = ""
    channel: str = ""
    way: str = ""
    rating: str = ""
    text: str = ""
    document: str = ""
    asks: bool = False
    includes_copies: bool = False


@dataclass(frozen=True, slots=True)
class PersonFigures:
    """Counts of messages, outcomes, and ratings for one person; `last_at` is in Unix seconds.

    `name` is the ID in the channel, if it is stored. `languages` is the number of languages used.
    """

    person: str
    name: str
    messages: int
    conversations: int
    answered: int
    asked_back: int
    refused: int
    failed: int
    up: int
    down: int
    languages: int
    last_at: float


class RecordStore:
    """The records in one database; see `connect_store`. Every method raises
    `RecordsUnavailableError`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prepare(self) -> None:
        """Create or migrate the tables."""
        try:
            with self.begin() as connection:
                _migrate(connection)
        except CommandError as error:
            # For example tables of a newer release, during a rolling update.
            raise RecordsUnavailableError(str(error)) from error

    def write(self, records: Iterable[Record]) -> None:
        """Insert or replace records, keeping existing ratings."""
        rows = [_make_row(record) for record in records]
        if not rows:
            return
        insert = (postgresql if self._engine.dialect.name == "postgresql" else sqlite).insert
        statement = insert(messages)
        kept = {*ID, "rating", "rating_reason"}
        changed = {column.name: statement.excluded[column.name] for column in messages.c
                   if column.name not in kept}  # fmt: skip
        with self.begin() as connection:
            connection.execute(
                statement.on_conflict_do_update(index_elements=ID, set_=changed), rows
            )

    def rate(self, question: Question, rating: str, reason: str) -> bool:
        """Store the rating of an answer; return False if the message has no record."""
        values = {
            name: _fit(name, value)
            for name, value in (("rating", rating), ("rating_reason", reason))
        }
        with self.begin() as connection:
            updated = connection.execute(update(messages).where(_is(question)).values(values))
        return updated.rowcount > 0

    def forget(
        self, question: Question, *, message: bool = False, ended_before: float | None = None
    ) -> int:
        """Delete the records of a conversation, or of one `message`; return how many there were.

        If `ended_before` (Unix seconds) is given, records that ended later are kept. Copies of the
        conversation are deleted as well. No text remains in the SQLite file.
        """
        condition = _is(question) if message else _is_conversation(question) | _is_copy(question)
        if ended_before is not None:
            condition &= messages.c.ended_at <= ended_before
        return self._delete(condition)

    def delete_older(self, ended_before: float, assistant: tuple[str, str]) -> int:
        """Delete the records of an assistant that ended before a time; return how many there
        were.
        """
        tenant, name = assistant
        return self._delete(
            (messages.c.ended_at < ended_before)
            & (messages.c.tenant == tenant)
            & (messages.c.assistant == name)
        )

    def _delete(self, which: ColumnElement[bool]) -> int:
        """Delete records together with their vectors, from which the text could be guessed."""
        with self.begin() as connection:
            count = connection.execute(delete(messages).where(which)).rowcount
            if count:
                kept = select(messages.c.message_id).where(
                    *(messages.c[name] == gap_questions.c[name] for name in ID)
                )
                connection.execute(delete(gap_questions).where(~kept.exists()))
        if count:
            self._clean()
        return count

    def get(self, question: Question) -> Record | None:
        """Return the record of one message."""
        with self.begin() as connection:
            row = connection.execute(select(messages).where(_is(question))).mappings().first()
        return None if row is None else _read_row(row)

    def find(
        self,
        selection: Selection,
        *,
        offset: int = 0,
        limit: int = PAGE,
        without: Sequence[str] = (),
    ) -> Sequence[Record]:
        """Return records, most recently ended first; columns in `without` are left empty."""
        wanted = (
            select(*(column for column in messages.c if column.name not in without))
            .where(*_conditions(selection))
            .order_by(messages.c.ended_at.desc(), messages.c.message_id)
            .offset(offset)
            .limit(limit)
        )
        with self.begin() as connection:
            return [_read_row(row) for row in connection.execute(wanted).mappings()]

    def count(self, selection: Selection) -> int:
        """Return the number of records."""
        wanted = select(func.count()).select_from(messages).where(*_conditions(selection))
        with self.begin() as connection:
            return int(connection.execute(wanted).scalar_one())

    def close_request(self, question: Question) -> bool:
        """Mark a request to talk to a person as done; return False if it does not exist."""
        condition = _is(question) & (messages.c.reason == PERSON)
        with self.begin() as connection:
            done = connection.execute(update(messages).where(condition).values(reason=PERSON_DONE))
        return done.rowcount > 0

    def read_all(self) -> Iterator[Record]:
        """Yield all records from one consistent snapshot."""
        with self.begin() as connection:
            streamed = connection.execution_options(stream_results=True, yield_per=PAGE)
            for row in streamed.execute(select(messages)).mappings():
                yield _read_row(row)

    def restore(self, records: Iterable[Record]) -> None:
        """Store records with their ratings."""
        for record in records:
            self.write([record])
            if record.rating:
                self.rate(record.id, record.rating, record.rating_reason)

    def read_owned(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the table name and row of all data that the owner created."""
        with self.begin() as connection:
            for table in _OWNED:
                for row in connection.execute(select(table)).mappings():
                    yield table.name, dict(row)

    def restore_owned(self, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> int:
        """Replace the owner's data with rows from `read_owned`; return how many there are."""
        tables = {table.name: table for table in _OWNED}
        count = 0
        with self.begin() as connection:
            for table in _OWNED:
                connection.execute(delete(table))
            for name, row in rows:
                known = {column.name for column in tables[name].columns} & row.keys()
                connection.execute(insert(tables[name]), {column: row[column] for column in known})
                count += 1
        return count

    def find_conversation(self, question: Question, *, limit: int = PAGE) -> Sequence[Record]:
        """Return the records of a question's conversation, oldest first."""
        wanted = (
            select(messages)
            .where(_is_conversation(question))
            .order_by(messages.c.accepted_at)
            .limit(limit)
        )
        with self.begin() as connection:
            return [_read_row(row) for row in connection.execute(wanted).mappings()]

    def read_figures(self, selection: Selection) -> Sequence[Mapping[str, Any]]:
        """Return the columns needed for statistics of each record, without text, oldest first."""
        names = (
            "ended_at", "assistant", "channel", "way", "outcome", "reason", "answered_by", "rating",
            "seconds", "cost_usd", "input_tokens", "output_tokens",
        )  # fmt: skip
        wanted = (
            select(*(messages.c[name] for name in names))
            .where(*_conditions(selection))
            .order_by(messages.c.ended_at)
        )
        with self.begin() as connection:
            rows = connection.execute(wanted)
            return [dict(zip(names, row, strict=True)) for row in rows]

    def count_cited(self, selection: Selection, *, limit: int = 20_000) -> Mapping[str, int]:
        """Return the number of answers that cite each document, among the newest records."""
        wanted = (
            select(messages.c.sources)
            .where(*_conditions(selection))
            .order_by(messages.c.ended_at.desc())
            .limit(limit)
        )
        counts: Counter[str] = Counter()
        with self.begin() as connection:
            for (sources,) in connection.execute(wanted):
                cited = {str(source.get("chunk_id") or "") for source in json.loads(sources)}
                counts.update({document_of(chunk_id) for chunk_id in cited} - {""})
        return counts

    def list_people(
        self, selection: Selection, *, person: str = "", offset: int = 0, limit: int = PAGE
    ) -> Sequence[PersonFigures]:
        """Return the people in a selection, most recently active first, or only one `person`."""
        columns = messages.c
        is_wanted = columns.person == person if person else columns.person != ""
        conversation = columns.tenant + "/" + columns.assistant + "/" + columns.conversation_id
        last = func.max(columns.ended_at)
        wanted = (
            select(
                columns.person,
                func.max(columns.person_name),
                func.count(),
                func.count(conversation.distinct()),
                *(
                    func.sum(case((column == value, 1), else_=0))
                    for column, value in (
                        (columns.outcome, "answered"),
                        (columns.outcome, "clarification"),
                        (columns.outcome, "refused"),
                        (columns.outcome, "failed"),
                        (columns.rating, "up"),
                        (columns.rating, "down"),
                    )
                ),
                func.count(func.nullif(columns.language, "").distinct()),
                last,
            )
            .where(is_wanted, *_conditions(selection))
            .group_by(columns.person)
            .order_by(last.desc(), columns.person)
            .offset(offset)
            .limit(limit)
        )
        with self.begin() as connection:
            return [PersonFigures(*row) for row in connection.execute(wanted)]

    def find_conversations_of(
        self, person: str, selection: Selection, *, limit: int = PAGE
    ) -> Sequence[Question]:
        """Return one message of each conversation of a person."""
        columns = messages.c
        wanted = (
            select(
                columns.tenant,
                columns.assistant,
                columns.conversation_id,
                func.min(columns.message_id),
            )
            .where(columns.person == person, *_conditions(selection))
            .group_by(columns.tenant, columns.assistant, columns.conversation_id)
            .limit(limit)
        )
        with self.begin() as connection:
            return [
                Question(**dict(zip(ID, row, strict=True))) for row in connection.execute(wanted)
            ]

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def begin(self) -> "_Transaction":
        """Return a transaction, for the stores of the owner's data."""
        return _Transaction(self._engine)

    def _clean(self) -> None:
        """Remove deleted text from the SQLite log; the pages have already been overwritten."""
        if self._engine.dialect.name == "sqlite":
            with self.begin() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


class _Transaction:
    """A transaction that maps database errors to unavailable or refused."""

    def __init__(self, engine: Engine) -> None:
        self._context = engine.begin()

    def __enter__(self) -> Connection:
        with _naming_errors():
            return self._context.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with _naming_errors():
            self._context.__exit__(kind, error, trace)
            if error is not None:
                raise error


@contextmanager
def _naming_errors() -> Iterator[None]:
    try:
        yield
    except (DataError, IntegrityError) as error:
        raise RecordRefusedError(_describe(error)) from error
    except (DBAPIError, PoolTimeoutError) as error:
        # A missing permission or table is not a fault of the record: records wait until it is
        # fixed.
        raise RecordsUnavailableError(_describe(error)) from error
    except (SQLAlchemyError, OverflowError, UnicodeError) as error:
        # Drivers raise the last two for integers above 64 bits and lone surrogates.
        raise RecordRefusedError(_describe(error)) from error


def connect_store(url: str) -> RecordStore:
    """Return the store for an SQLAlchemy URL, without connecting to it.

    Raises `RecordsUrlError` for an unsupported URL.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        raise RecordsUrlError(f"expected {_EXPECTED}, found an invalid URL") from None
    backend = address.get_backend_name()
    if backend == "sqlite":
        engine = create_engine(address, connect_args={"timeout": _TIMEOUT_SECONDS})
        _prepare_file(engine, address.database)
        return RecordStore(engine)
    if backend != "postgresql":
        raise RecordsUrlError(f"expected {_EXPECTED}, found {address.drivername}://")
    try:
        return RecordStore(
            create_engine(
                address.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                connect_args={"connect_timeout": int(_TIMEOUT_SECONDS)},
            )
        )
    except ModuleNotFoundError:
        raise RecordsUrlError(
            "PostgreSQL needs the extra postgresql: pip install 'refdesk[postgresql]'"
        ) from None


def _prepare_file(engine: Engine, path: str | None) -> None:
    """Create the file, readable only by its owner, and configure SQLite to overwrite deleted
    data.
    """
    if path and path != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch(mode=0o600)

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")


def _migrate(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(resources.files("records") / "migrations"))
    config.attributes["connection"] = connection
    if connection.dialect.name == "postgresql":
        # Several processes start at once; the lock ends with the transaction.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7316905210)")
    else:
        # The driver starts transactions only before changes of rows. Without this, a crash or a
        # concurrent start could leave an incomplete set of tables.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    command.upgrade(config, "head")


def _make_row(record: Record) -> dict[str, Any]:
    row = {field.name: getattr(record, field.name) for field in fields(record)}
    for name in _JSON_COLUMNS:
        row[name] = json.dumps(row[name], ensure_ascii=False)
    row["cost_usd"] = None if record.cost_usd is None else str(record.cost_usd)
    return {name: _fit(name, value) for name, value in row.items()}


def _fit(name: str, value: Any) -> Any:
    """Truncate text to the length of its column, and remove NUL characters, which PostgreSQL
    rejects.
    """
    if not isinstance(value, str):
        return value
    return value.replace("\0", "")[: getattr(messages.c[name].type, "length", None)]


def _read_row(row: RowMapping) -> Record:
    values = dict(row)
    for name in values.keys() & set(_JSON_COLUMNS):
        value = json.loads(values[name])
        values[name] = tuple(value) if isinstance(value, list) else value
    cost = values["cost_usd"]
    values["cost_usd"] = None if cost is None else Decimal(cost)
    return Record(**values)


def _is(question: Question) -> ColumnElement[bool]:
    return _is_conversation(question) & (messages.c.message_id == question.message_id)


def _is_conversation(question: Question) -> ColumnElement[bool]:
    return (
        (messages.c.tenant == question.tenant)
        & (messages.c.assistant == question.assistant)
        & (messages.c.conversation_id == question.conversation_id)
    )


def _is_copy(question: Question) -> ColumnElement[bool]:
    """Select copies of the question's conversation made by the owner or by a replay."""
    return or_(False, *map(_is_conversation, list_copies(question)))


def _conditions(selection: Selection) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if selection.channel not in COPYING and not selection.includes_copies:
        conditions.append(messages.c.channel.not_in(COPYING))
    if selection.assistants is not None:
        pairs = [
            (messages.c.tenant == tenant) & (messages.c.assistant == assistant)
            for tenant, assistant in selection.assistants
        ]
        conditions.append(or_(False, *pairs))
    if selection.since:
        conditions.append(messages.c.ended_at >= selection.since)
    if selection.until:
        conditions.append(messages.c.ended_at < selection.until)
    if selection.asks:
        conditions.append(messages.c.way.not_in((COURTESY, COMMAND)))
    for name in ("reason", "channel", "way", "rating"):
        value = getattr(selection, name)
        if value:
            conditions.append(messages.c[name] == value)
    return conditions + list(_further_conditions(selection))


def _has_outcome(outcome: str) -> ColumnElement[bool]:
    columns = messages.c
    match outcome:
        case "written":
            return (columns.outcome == "answered") & (columns.answered_by != SEARCH)
        case "passages":
            return (columns.outcome == "answered") & (columns.answered_by == SEARCH)
        case "unresolved":
            is_open = columns.outcome.in_(UNRESOLVED) & (columns.reason != OUT_OF_SCOPE)
            return is_open | (columns.rating == "down")
    return columns.outcome == outcome


def _further_conditions(selection: Selection) -> Iterator[ColumnElement[bool]]:
    if selection.outcome:
        yield _has_outcome(selection.outcome)
    if selection.document:
        cited = f'"chunk_id": {json.dumps(selection.document, ensure_ascii=False)[:-1]}#'
        yield messages.c.sources.contains(cited, autoescape=True)
    if selection.text:
        yield messages.c.question.icontains(selection.text, autoescape=True) | (
            messages.c.answer.icontains(selection.text, autoescape=True)
        )


def _describe(error: Exception) -> str:
    """Return the first line of an error without the statement and its values."""
    original = getattr(error, "orig", None)
    return str(original if original is not None else error).partition("\n")[0]

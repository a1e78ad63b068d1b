"""Erases a conversation from every store, even if no worker is running."""

import argparse
import asyncio
from dataclasses import asdict
from functools import partial

from broker.values import Erased
from cli.printing import print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.open_records import connect_records
from deploy.assembly.recording import make_conversations
from deploy.assembly.runtime import Runtime, connect_runtime
from deploy.errors import CommandError
from envelope.envelope import EnvelopeError
from envelope.question import CHANNEL_MARK, HTTP, Question, qualify_conversation
from gateway.desk import erase
from gateway.people import PersonalData
from memory.conversation import RedisPeople

EXIT_NOTHING = 3
TERMINAL = "cli"
LEFT = (
    "Ids of messages remain for RESULT_TTL_HOURS, so that repeated messages are recognised. "
    "Erase backups, snapshots and files of replicas yourself; see docs/operations.md. Messages "
    "that asked a person to take over stay in mailboxes and channels; their links are no longer "
    "valid."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk forget`."""
    parser.add_argument("conversation", nargs="?", help="id of the conversation")
    parser.add_argument(
        "--message", metavar="ID", help="id of one of its messages, instead of the conversation"
    )
    parser.add_argument(
        "--person",
        metavar="PSEUDONYM",
        help="erase the recorded conversations and the preferences of a person instead; the "
        "console shows the pseudonym",
    )
    parser.add_argument("--tenant", help="tenant of the conversation (default: the setting TENANT)")
    parser.add_argument(
        "--assistant", help="assistant of the conversation (default: the setting ASSISTANT)"
    )
    parser.add_argument(
        "--channel",
        help="channel, such as slack or telegram (default: the prefix of the id, or http)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk forget`."""
    named = [chosen.conversation, chosen.message, chosen.person]
    if sum(choice is not None for choice in named) != 1:
        raise CommandError(
            "specify the id of a conversation, --message with the id of a message, or --person"
        )
    if chosen.person is not None:
        return asyncio.run(_forget_person(chosen, load_settings()))
    return asyncio.run(_forget(chosen, load_settings()))


async def _forget(chosen: argparse.Namespace, settings: Settings) -> int:
    async with connect_runtime(settings) as runtime:
        if not runtime.endpoint.durable:
            raise CommandError(
                "there is nothing to erase: without a Redis server, data is lost when a process "
                "ends"
            )
        question = await _question(chosen, runtime)
        erased = await _erase(runtime, question)
        if not erased.found and _may_be_terminals(chosen):
            # `refdesk ask --conversation ID` stores the id with its channel.
            own = qualify_conversation(TERMINAL, question.conversation_id)
            others = question.model_copy(update={"conversation_id": own})
            if (erased := await _erase(runtime, others)).found:
                question = others
    file_line = _describe_rewriting(settings.erasure_rewrite_seconds, settings.redis_url)
    _report(question, erased, file_line, as_json=chosen.json)
    return 0 if erased.found else EXIT_NOTHING


async def _forget_person(chosen: argparse.Namespace, settings: Settings) -> int:
    """Erase the recorded conversations of a person with an assistant, and their preferences."""
    from records.store import RecordsUnavailableError

    tenant = settings.tenant if chosen.tenant is None else chosen.tenant
    assistant = settings.assistant if chosen.assistant is None else chosen.assistant
    store, count, had_choice, has_more = (
        connect_records(settings.records_url, settings.refdesk_data),
        0,
        False,
        True,
    )
    try:
        store.prepare()
        async with connect_runtime(settings) as runtime:
            client = runtime.endpoint.client()
            choices = RedisPeople(client, lambda _question: 1)
            people = PersonalData(store, choices, partial(_erase, runtime))
            while has_more:
                done = await people.forget([(tenant, assistant)], chosen.person)
                count, has_more = count + done.conversations, done.has_more
                had_choice = had_choice or done.had_choice
            await client.aclose()
    except RecordsUnavailableError as error:
        raise CommandError(f"the database of the records is not available: {error}") from error
    finally:
        store.close()
    if chosen.json:
        say_json({"person": chosen.person, "conversations": count, "choice": had_choice})
    else:
        print_line(f"{count} conversations of this person with {tenant}/{assistant} are erased,")
        print_line("and their preferences for it (language and form of answers)")
    return 0 if count or had_choice else EXIT_NOTHING


def _may_be_terminals(chosen: argparse.Namespace) -> bool:
    """Return whether only an id was given, which may belong to a conversation in the terminal."""
    named = chosen.conversation
    return named is not None and chosen.channel is None and CHANNEL_MARK not in named


async def _erase(runtime: Runtime, question: Question) -> Erased:
    client = runtime.endpoint.client()
    try:
        conversations = make_conversations(runtime.settings, runtime.broker, client)
        return await erase(runtime.broker.eraser, conversations, question)
    finally:
        await client.aclose()


async def _question(chosen: argparse.Namespace, runtime: Runtime) -> Question:
    """Return a question of the selected conversation."""
    tenant = runtime.settings.tenant if chosen.tenant is None else chosen.tenant
    assistant = runtime.settings.assistant if chosen.assistant is None else chosen.assistant
    if chosen.message is not None:
        questions = [
            question
            for question in await runtime.broker.admin.find_questions(chosen.message)
            if (question.tenant, question.assistant) == (tenant, assistant)
        ]
        named = sorted({question.conversation_id for question in questions})
        if len(named) != 1:
            raise CommandError(
                f"expected one conversation with a message {chosen.message!r} of {tenant}/"
                f"{assistant}, found {len(named)}{': ' if named else ''}{', '.join(named)}"
            )
        return questions[0]
    named = chosen.conversation
    try:
        stored = _qualify_id(named, chosen.channel)
        return Question(tenant=tenant, assistant=assistant, conversation_id=stored, message_id="-")
    except (ValueError, EnvelopeError) as error:
        raise CommandError(f"not a valid id: {error}") from error


def _qualify_id(named: str, channel: str | None) -> str:
    """Return an id in its stored form; an id with a slash contains its channel unless `channel` is
    given.
    """
    if channel is None and CHANNEL_MARK in named:
        return named
    return qualify_conversation(HTTP if channel is None else channel, named)


def _report(question: Question, erased: Erased, file_line: str, *, as_json: bool) -> None:
    whose = f"{question.conversation_id!r} of {question.tenant}/{question.assistant}"
    if as_json:
        say_json(
            {
                "tenant": question.tenant,
                "assistant": question.assistant,
                "conversation_id": question.conversation_id,
                "found": erased.found,
                **asdict(erased),
            }
        )
        return
    if not erased.found:
        print_line(
            f"there is no data of the conversation {whose}: it never existed, expired, or was"
        )
        print_line("erased before. `refdesk trace MESSAGE_ID` shows one message.")
        return
    print_line(f"the conversation {whose} is erased:")
    print_line(
        f"  {erased.messages} messages with replies and journals, {erased.ended} of them open"
    )
    print_line(f"  {erased.entries} envelopes that were waiting, running or delayed")
    print_line(f"  {erased.dead_letters} dead letters")
    print_line(f"  {erased.memories} entries of its memory")
    print_line(f"  {erased.records} records of the console")
    print_line(file_line)
    print_line(LEFT)


def _describe_rewriting(after_seconds: float, redis_url: str | None) -> str:
    """Return a line that states when the append-only file of Redis no longer contains the data."""
    if not after_seconds:
        return "Run BGREWRITEAOF on Redis: ERASURE_REWRITE_SECONDS is 0."
    if redis_url is None:
        return "The append-only file of the data folder is rewritten without it."
    return f"A worker makes Redis rewrite its append-only file, after {after_seconds:g} seconds."

"""Measures the time to an answer, and its causes: sequential calls, all calls, and tokens.

`python -m benchmarks.speed.latency` starts a desk of one process on the example documents, and a
model server on this machine whose calls take 1 s to the first token and then 60 tokens a second. It
asks the questions of each setting over HTTP, with and without drafts (`RELEASE`), and prints a
table of medians. `--sentences` is the length of the answers. A token is four characters.

The first text is that of a draft, or of the approved answer. `models` is the part of the time
during which at least one call was open; the rest is Refdesk's own, and depends on the machine.
Round trips are those of the desk to Redis, and processor time is that of its process, from the
question to its end; both include what an idle desk needs meanwhile.
"""

import argparse
import asyncio
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from benchmarks.speed.latency_server import EMBEDDINGS, LatencyServer, TimedCall, run_server
from benchmarks.speed.redis_server import Count, counting_proxy, private_server
from benchmarks.speed.served_desk import EXAMPLES, Bench, ResumedAnswer, ResumingClient

SENTENCES = 2
MODEL = "m@openai"
RELEASES = ("checked", "approved")
_PORT = re.compile(r":(\d{1,5})(?=;|/|\s|$)")

FIRST = (
    "How do I configure SMS routing rules?",
    "How do I rent a phone number?",
    "How do I export reports?",
    "How do I invite users to my account?",
    "How do I verify the signatures of webhooks?",
    "How do I create a rate plan?",
    "How do I reset a password?",
)
GERMAN = {
    "Wie konfiguriere ich Regeln für das Routing von SMS?": FIRST[0],
    "Wie miete ich eine Telefonnummer?": FIRST[1],
    "Wie exportiere ich Berichte?": FIRST[2],
    "Wie lade ich Benutzer in mein Konto ein?": FIRST[3],
    "Wie prüfe ich die Signaturen von Webhooks?": FIRST[4],
    "Wie erstelle ich einen Tarifplan?": FIRST[5],
    "Wie setze ich ein Passwort zurück?": FIRST[6],
}
FOLLOW_UPS = {
    "And how do I test them?": "How do I test SMS routing rules?",
    "And what are the sender ids for it?": "What are the sender ids of a phone number?",
    "And in which formats are they?": "In which formats are reports exported?",
    "And which roles can they have?": "Which roles can users of an account have?",
    "And what if they do not arrive?": "What do I do if webhooks do not arrive?",
    "And how do I assign it?": "How do I assign a rate plan?",
    "And how do I sign in without it?": "How do I set up single sign-on instead of a password?",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: what is asked, and the settings of the desk it is asked of."""

    name: str
    questions: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """What is asked before each question in its conversation."""


VENDOR_VECTORS = {"EMBEDDING_MODEL": "text-embedding-3-small@openai"}
SETTINGS = (
    Setting("first question, English", FIRST),
    Setting("first question, German", tuple(GERMAN)),
    Setting("follow-up, English", tuple(FOLLOW_UPS), before=FIRST),
    Setting("English, vendor's embeddings", FIRST, VENDOR_VECTORS),
    Setting("German, vendor's embeddings", tuple(GERMAN), VENDOR_VECTORS),
    Setting("follow-up, vendor's embeddings", tuple(FOLLOW_UPS), VENDOR_VECTORS, before=FIRST),
)


@dataclass(frozen=True, slots=True)
class Waited:
    """What one question took, in seconds after `began`, and the calls that were made for it."""

    began: float
    first_text: float
    complete: float
    outcome: str
    retracted: int
    calls: tuple[TimedCall, ...]
    round_trips: int
    processor_seconds: float

    def count_model_seconds(self, until: float) -> float:
        """Return for how many of the first `until` seconds at least one call was open."""
        total, covered = 0.0, self.began
        for call in sorted(self.calls, key=lambda call: call.began):
            start, end = max(call.began, covered), min(call.ended, self.began + until)
            if end > start:
                total, covered = total + end - start, end
        return total

    @property
    def calls_in_sequence(self) -> int:
        """The most calls of which each began after the one before had ended."""
        count, ended = 0, 0.0
        for call in sorted(self.calls, key=lambda call: call.ended):
            if call.began >= ended:
                count, ended = count + 1, call.ended
        return count

    @property
    def prompt_tokens(self) -> int:
        """The tokens of all prompts; embeddings have none."""
        return sum(call.prompt_tokens for call in self.calls if call.task != EMBEDDINGS)

    @property
    def own_prompt_tokens(self) -> int:
        """The tokens of all prompts without the text of the documents."""
        return self.prompt_tokens - sum(call.context_tokens for call in self.calls)


COLUMNS: Mapping[str, Callable[[Waited], float]] = {
    "first text (s)": lambda one: one.first_text,
    "of it models": lambda one: one.count_model_seconds(one.first_text),
    "complete (s)": lambda one: one.complete,
    "of it models ": lambda one: one.count_model_seconds(one.complete),
    "calls in sequence": lambda one: one.calls_in_sequence,
    "calls": lambda one: len(one.calls),
    "prompt tokens": lambda one: one.own_prompt_tokens,
    "and with the documents": lambda one: one.prompt_tokens,
    "round trips": lambda one: one.round_trips,
    "processor (ms)": lambda one: round(1000 * one.processor_seconds),
}

_SECONDS = frozenset([*COLUMNS][:4])


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.latency", description=__doc__)
    parser.add_argument(
        "--sentences", type=int, default=SENTENCES, help="the number of sentences of an answer"
    )
    parser.add_argument(
        "--only", default="", help="only the settings whose name contains this text"
    )
    parser.add_argument("--release", nargs="*", default=RELEASES, choices=RELEASES)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of the desk"
    )
    chosen = parser.parse_args()
    more = dict(one.split("=", 1) for one in chosen.set)
    asyncio.run(_measure_all(chosen.sentences, chosen.only, chosen.release, more))
    return 0


async def _measure_all(
    sentences: int, only: str, releases: Sequence[str], more: Mapping[str, str]
) -> None:
    print(
        f"{datetime.now(UTC).date()}, {os.cpu_count()} processor cores; answers of {sentences} "
        "sentences; calls of 1 s and 60 tokens a second; medians\n"
    )
    names = ("setting", "release", *(name.strip() for name in COLUMNS), "usual calls (s)")
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for setting in SETTINGS:
        for release in releases:
            if only in setting.name:
                waited = await _measure(setting, sentences, {**more, "RELEASE": release})
                print(_format_row(setting.name, release, waited), flush=True)


async def _measure(setting: Setting, sentences: int, more: Mapping[str, str]) -> list[Waited]:
    """Ask the questions of one setting, one after the other, each in its own conversation."""
    server = LatencyServer(dict(GERMAN), dict(FOLLOW_UPS), sentences)
    with private_server() as redis, tempfile.TemporaryDirectory() as folder:
        counted = redis.folder / "counted.sock"
        async with run_server(server):
            bench = Bench(
                f"unix://{counted}",
                Path(folder),
                GEN_MODEL=MODEL,
                OPENAI_API_KEY="none",
                OPENAI_BASE_URL=server.url,
                MODEL_CACHE_SECONDS="0",
                **{**setting.settings, **more},
            )
            with counting_proxy(str(counted), str(redis.socket)) as count:
                await asyncio.to_thread(bench.refdesk, "ingest", str(EXAMPLES))
                return await _ask_all(setting, server, bench, count)


async def _ask_all(
    setting: Setting, server: LatencyServer, bench: Bench, count: Count
) -> list[Waited]:
    process, line = await asyncio.to_thread(bench.start, "serve", "--port", "0", until="serving on")
    try:
        client = ResumingClient(int(_PORT.findall(line)[-1]))
        before = setting.before or ("",) * len(setting.questions)
        costs = _Costs(process.pid, count)
        return [
            await _ask(client, server, costs, earlier, question)
            for earlier, question in zip(before, setting.questions, strict=True)
        ]
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 30)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What a process has used so far."""

    process_id: int
    count: Count

    def read(self) -> tuple[int, float]:
        """Return its round trips to Redis and its processor seconds."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return self.count.turns, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _ask(
    client: ResumingClient, server: LatencyServer, costs: _Costs, earlier: str, text: str
) -> Waited:
    conversation = f"latency-{uuid4().hex[:8]}"
    if earlier:
        await client.ask(conversation, uuid4().hex, earlier)
    server.calls.clear()
    turns, seconds = costs.read()
    began = time.perf_counter()
    answer = await client.ask(conversation, uuid4().hex, text)
    turns_after, seconds_after = costs.read()
    return Waited(
        began=began,
        first_text=answer.first_text_seconds,
        complete=answer.seconds,
        outcome=_outcome(answer),
        retracted=answer.retracted,
        calls=tuple(server.calls),
        round_trips=turns_after - turns,
        processor_seconds=seconds_after - seconds,
    )


def _outcome(answer: ResumedAnswer) -> str:
    return str(answer.done[-1].get("outcome")) if answer.done else "; ".join(answer.errors)


def _format_row(name: str, release: str, waited: Sequence[Waited]) -> str:
    answered = [one for one in waited if one.outcome == "answered"]
    if not answered:
        outcomes = ", ".join(sorted({one.outcome for one in waited}))
        return f"| {name} | {release} | no answer: {outcomes} |"
    cells = [
        f"{statistics.median(map(read, answered)):{'.2f' if column in _SECONDS else 'g'}}"
        for column, read in COLUMNS.items()
    ]
    usual = sorted(answered, key=lambda one: one.complete)[len(answered) // 2]
    calls = " ".join(
        f"{call.task} {call.ended - call.began:.1f}"
        for call in sorted(usual.calls, key=lambda call: call.began)
    )
    lost, retracted = len(waited) - len(answered), sum(one.retracted for one in answered)
    notes = [f"{lost} of {len(waited)} not answered"] if lost else []
    notes += [f"{retracted} sentences retracted"] if retracted else []
    return f"| {' | '.join((name, release, *cells, '; '.join((calls, *notes))))} |"


if __name__ == "__main__":
    raise SystemExit(main())

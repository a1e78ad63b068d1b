"""A model on this machine that takes its time: the same waiting for each call, for each token.

It speaks OpenAI's chat completions, streamed or whole, and embeddings. What it says is made from
the prompt by fixed rules, so that every check of an answer passes. It measures waiting and says
nothing about the quality of answers.
"""

import asyncio
import hashlib
import json
import math
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

FIRST_TOKEN_SECONDS = 1.0
TOKENS_PER_SECOND = 60.0
CHARACTERS_PER_TOKEN = 4
DIMENSIONS = 1536
EMBEDDINGS = "embeddings"
_BLOCK = re.compile(r'<data name="([a-z ]{1,60})">\n([^\x00]*?)\n</data>')
_SOURCE = re.compile(r"^Source (\d{1,4}):$", re.MULTILINE)
_PASSAGE = re.compile(r"^Passage (\d{1,4}):$", re.MULTILINE)
_SENTENCE = re.compile(r"^([A-Z][^.|#`\n]{20,300}\.)(?=\s|$)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_CONTEXT = "source"
"""The name of the data blocks that hold text of the documents."""

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One call as the server saw it; times are those of `time.perf_counter`.

    `context_tokens` is the part of the prompt that is text of the documents.
    """

    task: str
    began: float
    ended: float
    prompt_tokens: int
    context_tokens: int
    answer_tokens: int


@dataclass(slots=True)
class LatencyServer:
    """Answers by rules, slowly; `sentences` is the length of its answers.

    `translations` holds the English of texts, `meanings` what follow-ups mean.
    """

    translations: dict[str, str] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)
    sentences: int = 2
    url: str = ""
    calls: list[TimedCall] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    length = re.search(r"content-length: (\d{1,9})", head, re.IGNORECASE)
                    body = await reader.readexactly(int(length[1]) if length else 0)
                    await self._answer(head.split(" ")[1], json.loads(body or b"{}"), writer)
        finally:
            writer.close()

    async def _answer(self, path: str, body: Fields, writer: asyncio.StreamWriter) -> None:
        if path.endswith("/embeddings"):
            await self._embed(body, writer)
        elif path.endswith("/completions"):
            await self._complete(body, writer)
        else:
            await _send(writer, {"data": []})

    async def _embed(self, body: Fields, writer: asyncio.StreamWriter) -> None:
        began = time.perf_counter()
        texts = body["input"]
        if len(texts) <= _FEW:
            # The documents are embedded before the measurement; nobody waits for those.
            await asyncio.sleep(FIRST_TOKEN_SECONDS)
        data = [{"index": n, "embedding": _embed(text)} for n, text in enumerate(texts)]
        tokens = sum(map(count_tokens, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        self.calls.append(TimedCall(EMBEDDINGS, began, time.perf_counter(), tokens, 0, 0))
        await _send(writer, {"object": "list", "data": data, "model": "m", "usage": usage})

    async def _complete(self, body: Fields, writer: asyncio.StreamWriter) -> None:
        began = time.perf_counter()
        form = body["response_format"]["json_schema"]
        task = form["name"]
        prompt = "\n".join(message["content"] for message in body["messages"])
        user = body["messages"][-1]["content"]
        said = json.dumps(_complete_fields(self._say(task, user), form["schema"]))
        tokens = count_tokens(said)
        usage = {
            "prompt_tokens": count_tokens(prompt),
            "completion_tokens": tokens,
            "total_tokens": count_tokens(prompt) + tokens,
        }
        await asyncio.sleep(FIRST_TOKEN_SECONDS)
        if body.get("stream"):
            await _stream(writer, said, usage)
        else:
            await asyncio.sleep(tokens / TOKENS_PER_SECOND)
            message = {"role": "assistant", "content": said}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            await _send(
                writer, {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}
            )
        ended = time.perf_counter()
        context = sum(count_tokens(text) for name, text in _BLOCK.findall(user) if name == _CONTEXT)
        self.calls.append(TimedCall(task, began, ended, usage["prompt_tokens"], context, tokens))

    def _say(self, task: str, user: str) -> Fields:
        rules: dict[str, Callable[[str], Fields]] = {
            "translate": self._translate,
            "essence": self._find_essence,
            "scope": _decide_scope,
            "understand": self._understand,
            "respond": self._respond,
            "judge": _judge,
        }
        return rules[task](user)

    def _translate(self, user: str) -> Fields:
        text = _read_block(user, "text")
        return {
            "text_eng": self.translations.get(text, text),
            "confidence": 0.98,
            "corrections": [],
        }

    def _find_essence(self, user: str) -> Fields:
        typed = _read_block(user, "last turn")
        text = _read_block(user, "last turn in English") or self.translations.get(typed, typed)
        leans = text in self.meanings
        return {
            "canonical_question": self.meanings.get(text, text),
            "context_type": "follow_up" if leans else "new_topic",
        }

    def _understand(self, user: str) -> Fields:
        text = _read_block(user, "last turn")
        found = self._find_essence(user)
        question = found["canonical_question"]
        return {
            "canonical_question": "" if question == text else question,
            "context_type": found["context_type"],
            "verdict": "within",
            "details": None,
        }

    def _respond(self, user: str) -> Fields:
        """Quote the first whole sentences of the sources, each with its number.

        Answers in German have fixed sentences: a draft in the wrong language is not shown.
        """
        if _read_block(user, "language") == "German":
            return _answer_with(" ".join(f"{said} [1]" for said in _GERMAN[: self.sentences]))
        parts = _SOURCE.split(user)[1:]
        quoted: dict[str, None] = {}
        for number, part in zip(parts[::2], parts[1::2], strict=True):
            for sentence in _SENTENCE.findall(_read_block(part, "source")):
                quoted.setdefault(f"{sentence} [{number}]", None)
        return _answer_with(" ".join([*quoted][: self.sentences]))


_GERMAN = (
    "Die Einstellungen dafür stehen in der Konsole unter dem passenden Menü.",
    "Danach gilt die Änderung sofort für alle neuen Nachrichten im Konto.",
    "Wer sie nicht sieht, braucht eine Rolle mit mehr Rechten im Konto.",
)
_FEW = 4
_HEAD = {"id": "c", "created": 0, "model": "m"}


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@asynccontextmanager
async def run_server(server: LatencyServer) -> AsyncIterator[LatencyServer]:
    """Serve on a free port of the loopback address inside the block."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=1 << 22)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()


def _complete_fields(said: Fields, schema: Fields) -> Fields:
    """Return every field of the schema in its order, as a vendor's strict schema requires it."""
    empty: Fields = {"string": "", "array": []}
    return {
        name: said.get(name, empty.get(form.get("type", "")))
        for name, form in schema["properties"].items()
    }


def _answer_with(answer: str) -> Fields:
    status = "answered" if answer else "insufficient_context"
    return {"status": status, "answer": answer, "confidence": 0.9, "missing": ""}


def _decide_scope(_user: str) -> Fields:
    return {
        "verdict": "within",
        "confidence": 0.95,
        "analysis": "It asks how a part of the platform is used.",
    }


def _judge(user: str) -> Fields:
    verdicts = [
        {"passage": int(number), "quote": "", "reason": "says the same", "supported": True}
        for number in dict.fromkeys(_PASSAGE.findall(user))
    ]
    return {
        "claims_read": 2,
        "verdicts": verdicts,
        "missing": [],
        "completeness": 1.0,
        "accuracy": 1.0,
        "language_matches": True,
        "decision": "approve",
    }


def _read_block(text: str, name: str) -> str:
    """Return the content of the first data block of that name, or an empty text."""
    return next((content for found, content in _BLOCK.findall(text) if found == name), "")


def _embed(text: str) -> list[float]:
    """Return a vector of the words of a text: texts that share words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[place % DIMENSIONS] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


async def _stream(writer: asyncio.StreamWriter, said: str, usage: Fields) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    began = time.perf_counter()
    for number, start in enumerate(range(0, len(said), CHARACTERS_PER_TOKEN), start=1):
        due = began + number / TOKENS_PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        delta = {"content": said[start : start + CHARACTERS_PER_TOKEN]}
        _write_chunk(writer, choices=[{"index": 0, "delta": delta, "finish_reason": None}])
    _write_chunk(writer, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    _write_chunk(writer, choices=[], usage=usage)
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()
    writer.close()


def _write_chunk(writer: asyncio.StreamWriter, **fields: Any) -> None:
    chunk = {**_HEAD, "object": "chat.completion.chunk", **fields}
    writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


async def _send(writer: asyncio.StreamWriter, body: Fields) -> None:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    writer.write(head.encode() + b"\r\n\r\n" + data)
    await writer.drain()

"""A server that plays recordings in the form of the vendor that it is asked as."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.llm.step_dialects import AnthropicSteps
from tests.llm.vendor_dialects import Google, OpenAI
from tests.recordings.plain_way import PROMPTS, STAGES, Call
from tests.support.model_server import ModelServer, Received, Response

CHARACTERS = 40
"""How much of a text an event of a stream carries."""


class _OpenAI(OpenAI):
    def system(self, received: Received) -> str:
        return self.said(received)[0][1]

    def is_streamed(self, received: Received) -> bool:
        return bool(received.body.get("stream"))


class _Google(Google):
    def system(self, received: Received) -> str:
        return self.said(received)[0][1]

    def is_streamed(self, received: Received) -> bool:
        return "streamGenerateContent" in received.path


class _Anthropic(AnthropicSteps):
    def system(self, received: Received) -> str:
        return str(received.body["system"][0]["text"])

    def is_streamed(self, received: Received) -> bool:
        return bool(received.body.get("stream"))

    def answer(self, text: str) -> Response:
        return self.calls(text)


VENDORS: dict[str, _OpenAI | _Google | _Anthropic] = {
    "openai": _OpenAI(),
    "google": _Google(),
    "anthropic": _Anthropic(),
}


@dataclass(frozen=True)
class Prompt:
    """A call as it came: its stage, the whole of its text, whether it is streamed."""

    stage: str
    text: str
    is_streamed: bool


class RecordedModel(ModelServer):
    """Answers each stage with the next of its outputs for the turn that is being played."""

    def __init__(self, vendor: str = "openai") -> None:
        super().__init__("")
        self.vendor = VENDORS[vendor]
        self.prompts: list[Prompt] = []
        self.missing: list[Prompt] = []
        self._left: list[Call] = []

    @property
    def settings(self) -> dict[str, object]:
        """Settings by which every stage asks this server."""
        name = self.vendor.provider
        return {
            "gen_model": f"{self.vendor.model}@{name}",
            f"{name}_api_key": "secret-key",
            f"{name}_base_url": self.vendor.base_url(self.url),
            "model_cache_seconds": 0,
        }

    @property
    def unused(self) -> list[str]:
        """The stages of the turn that have an output which nobody asked for."""
        return [call.stage for call in self._left]

    def play(self, calls: Iterable[Call]) -> None:
        """Have these outputs, and forget what was left of the last turn."""
        self._left = list(calls)
        self.prompts, self.missing = [], []

    def choose_response(self, received: Received) -> Response:
        if received.path.endswith("/show"):
            return self.vendor.failure(404)
        prompt = self._read(received)
        self.prompts.append(prompt)
        result = next((call for call in self._left if call.stage == prompt.stage), None)
        text = None if result is None else number_places(result.text, prompt.text)
        if result is None or text is None:
            self.missing.append(prompt)
            return self.vendor.failure(400)
        self._left.remove(result)
        if not prompt.is_streamed:
            return self.vendor.answer(text)
        starts = range(0, len(text), CHARACTERS)
        return self.vendor.stream(*(text[at : at + CHARACTERS] for at in starts))

    def _read(self, received: Received) -> Prompt:
        system = self.vendor.system(received)
        stage = next((one for one, begins in _BEGINNINGS.items() if system.startswith(begins)), "?")
        text = "\n".join(_find_texts(received.body))
        return Prompt(stage, text, self.vendor.is_streamed(received))


def number_places(text: str, prompt: str) -> str | None:
    """Put the number that the prompt gives a place where a recording names it, as in [⟪Limits⟫].

    A place is named by the end of its line: searches change, and with them the numbers. None where
    the prompt does not have one of the places.
    """
    numbers = {place: number for number, place in reversed(_PLACES.findall(prompt))}
    named = {name: _find_number(name, numbers) for name in _NAMED.findall(text)}
    if None in named.values():
        return None
    return _NAMED.sub(lambda found: str(named[found[1]]), _QUOTED.sub(r"⟪\1⟫", text))


def _find_number(name: str, numbers: Mapping[str, str]) -> str | None:
    return next((number for place, number in numbers.items() if place.endswith(name)), None)


def _find_texts(value: object) -> Iterator[str]:
    """Yield every text of a request, in order."""
    if isinstance(value, str):
        yield value
    parts = value.values() if isinstance(value, Mapping) else value
    if isinstance(parts, Iterable) and not isinstance(parts, str):
        for part in parts:
            yield from _find_texts(part)


_PLACES = re.compile(
    r'(?:^Source |")(\d+)(?:(?:, a part of its section)?:\n<data name="source">\n|\. )'
    r'([^|"\n]*[^|"\n ])',
    re.MULTILINE,
)
"""A source with the line of its place, or one of the nearest pages."""

_NAMED = re.compile("⟪([^⟫]*)⟫")
_QUOTED = re.compile('"⟪([^⟫]*)⟫"')

_BEGINNINGS = {
    stage: (PROMPTS / f"{stage}.txt").read_text("utf-8").split("\n", 1)[0] for stage in STAGES
}

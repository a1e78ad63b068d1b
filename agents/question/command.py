"""Executes the commands of a conversation."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts, ProgressStep, ReadsLanguage
from citations.links import plain_line
from envelope.conversation import HANDED_OVER, PERSON_REPLY, Preferences
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.texts import Texts, primary_of, read_tag
from knowledge.language.scripts import CANDIDATES

COMMANDS = ("clear_history", "clear_all", "set_language", "get_stats", "help")
STATISTICS = (
    "questions",
    "outcome_answered",
    "outcome_clarification",
    "outcome_refused",
    "outcome_superseded",
    "outcome_failed",
    "commands",
    "processing_seconds",
)


class Reads(ReadsLanguage, BaseModel, frozen=True):
    """The command, and the stored state of the conversation."""

    command: str | None = None
    arguments: tuple[str, ...] = ()
    language: str = ""
    preferences: Preferences = Preferences()
    statistics: dict[str, float] = {}


class Writes(BaseModel, frozen=True):
    """The reply, and the changes to the stored conversation when the message is completed."""

    response: str
    remember_preferences: Preferences | None = None
    forget: Literal["", "history", "all"] = ""


class CommandAgent(Agent[Reads, Writes]):
    """Deletes the history, sets the language, or shows statistics or help.

    The reply to an unknown command lists the known ones.
    """

    role = Role.COMMAND
    step = ProgressStep.UNDERSTAND
    slots = 8
    reads = Reads
    writes = Writes

    def __init__(self, *, texts: Texts) -> None:
        self._texts = texts
        self._codes = _spellings(texts)

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(texts=parts.texts)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        language = reads.reply_language or reads.preferences.language or "en"
        command = (reads.command or "").strip().removeprefix("/").casefold().replace("-", "_")
        match command:
            case "clear_history":
                text = self._texts.text("history_cleared", language)
                return Wrote(Writes(response=text, forget="history"))
            case "clear_all":
                text = self._texts.text("all_cleared", language)
                return Wrote(Writes(response=text, forget="all"))
            case "set_language":
                return Wrote(self._language_set(" ".join(reads.arguments), language))
            case "get_stats":
                return Wrote(Writes(response=self._statistics(reads, language)))
            case "help":
                return Wrote(Writes(response=self._help(language)))
            case _ if command == PERSON_REPLY and len(reads.arguments) == 2:
                language, given = reads.arguments
                said = self._texts.text("person_answered", language)
                return Wrote(Writes(response=f"{said}\n\n{given}"))
            case _ if command == HANDED_OVER and len(reads.arguments) > 1:
                language, *results = reads.arguments
                texts = (self._texts.text(f"handover_{result}", language) for result in results)
                return Wrote(Writes(response=" ".join(texts)))
        return Wrote(Writes(response=self._unknown(reads.command or "", language)))

    def _language_set(self, named: str, language: str) -> Writes:
        spelling = named.strip().casefold()
        if not spelling:
            missing = self._texts.text(
                "language_missing", language, example=self._texts.text("language_de", language)
            )
            return Writes(response=missing)
        code = self._codes.get(spelling) or _read_language(spelling)
        if code is None:
            return Writes(response=self._language_unknown(named.strip(), language))
        return Writes(
            response=self._texts.text("language_set", code, language_name=self._name(code)),
            remember_preferences=Preferences(language=code, explicit=True),
        )

    def _language_unknown(self, named: str, language: str) -> str:
        known = (
            f"{code} ({self._texts.text(f'language_{code}', language)})"
            for code in self._texts.languages
        )
        return self._texts.text(
            "language_unknown", language, named=plain_line(named)[:60], languages=", ".join(known)
        )

    def _name(self, code: str) -> str:
        return self._texts.text(f"language_{code}", code) if code in self._texts.languages else code

    def _statistics(self, reads: Reads, language: str) -> str:
        """Return the counts of the conversation and the person's preferences."""
        lines = [
            f"- {self._texts.text(f'statistic_{name}', language)}: {reads.statistics[name]:.10g}"
            for name in STATISTICS
            if reads.statistics.get(name)
        ]
        title = "statistics_title" if lines else "statistics_none"
        lines += self._list_preferences(reads.preferences, language)
        return "\n".join((self._texts.text(title, language), *lines))

    def _list_preferences(self, chosen: Preferences, language: str) -> Iterator[str]:
        if chosen.explicit and chosen.language:
            label = self._texts.text("preference_language", language)
            yield f"- {label}: {self._name(chosen.language)}"
        if chosen.style and chosen.style != "usual":
            label = self._texts.text("preference_style", language)
            yield f"- {label}: {self._texts.text(f'style_{chosen.style}', language)}"

    def _help(self, language: str) -> str:
        lines = (f"- /{name}: {self._texts.text(f'help_{name}', language)}" for name in COMMANDS)
        return "\n".join((self._texts.text("help_title", language), *lines))

    def _unknown(self, command: str, language: str) -> str:
        return self._texts.text(
            "command_unknown",
            language,
            command=plain_line(command)[:60],
            commands=", ".join(f"/{name}" for name in COMMANDS),
        )


def _spellings(texts: Texts) -> dict[str, str]:
    """Return language codes by the name of each language in each language."""
    return {
        texts.text(f"language_{code}", spoken).casefold(): code
        for code in texts.languages
        for spoken in texts.languages
    }


def _read_language(spelling: str) -> str | None:
    """Return the language for `de`, `de-AT` or `zh_TW`, or None for an unknown language."""
    tag = read_tag(spelling)
    return tag if primary_of(tag) in CANDIDATES else None

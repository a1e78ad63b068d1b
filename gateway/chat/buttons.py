"""Creates buttons with short tokens, whose meaning is stored in Redis.

A token is a keyed hash of the question and the button's position: an answer that is rendered again
has the same tokens, and nobody can guess one.
"""

import hashlib

from pydantic import AliasChoices, BaseModel, Field

from envelope.question import Question
from envelope.texts import Texts
from gateway.answer import Answer
from gateway.chat.marked_text import plain_title
from gateway.chat.ports import Button, PushMemory

TOKEN_BYTES = 15
RATINGS = ("up", "down")


class Choice(BaseModel, frozen=True, extra="forbid"):
    """The meaning of a button: a text to ask, a rating, or a language to answer in.

    `answers_pause`: it approves, denies or fills in what only the person who asked may answer.
    Buttons that were stored before version 0.2 name the rating `thumb`.
    """

    question: Question
    number: str
    label: str
    ask: str = ""
    rating: str = Field(default="", validation_alias=AliasChoices("rating", "thumb"))
    language: str = ""
    answers_pause: bool = False


class Buttons:
    """Creates and resolves the buttons of a channel."""

    def __init__(self, memory: PushMemory, *, secret: str) -> None:
        self._memory = memory
        self._secret = hashlib.sha256(secret.encode()).digest()

    async def of(self, question: Question, answer: Answer, *, ratings: bool) -> list[Button]:
        """Return the buttons under an answer."""
        made = []
        for number, action in enumerate(answer.suggested_actions):
            label = plain_title(action.label)
            if action.kind == "source":
                if action.link is not None:
                    made.append(Button(label, "", action.kind, action.link))
                continue
            choice = Choice(
                question=question,
                number=str(number),
                label=label,
                ask=action.value,
                answers_pause=answer.pause is not None,
            )
            made.append(Button(label, await self.store(choice), action.kind))
        if ratings and answer.outcome.value == "answered":
            for rating in RATINGS:
                choice = Choice(question=question, number=rating, label=rating, rating=rating)
                made.append(Button("", await self.store(choice), rating))
        return made

    async def of_languages(self, question: Question, texts: Texts) -> list[Button]:
        """Return a button for each supported language, labelled in that language."""
        made = []
        for language in texts.languages:
            label = texts.text(f"language_{language}", language)
            choice = Choice(question=question, number=language, label=label, language=language)
            made.append(Button(label, await self.store(choice), "language"))
        return made

    async def store(self, choice: Choice) -> str:
        """Store the meaning of a button; return its token."""
        name = "\x1f".join((*choice.question.conversation, choice.question.message_id))
        token = hashlib.blake2b(
            f"{name}\x1f{choice.number}".encode(), key=self._secret, digest_size=TOKEN_BYTES
        ).hexdigest()
        await self._memory.put_token(token, choice.model_dump_json(), choice.question)
        return token

    async def choice(self, token: str) -> Choice | None:
        """Return the meaning of a token, or None when it is no longer stored."""
        found = await self._memory.token(token)
        return None if found is None else Choice.model_validate_json(found)

"""The prefixes that embedding models expect before questions and documents.

Some models were trained with such a prefix, as their authors document, and find less without it.
The table contains common models by name; the prefixes of other models can be set in the settings.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_SEARCHING = "Represent this sentence for searching relevant passages: "
_INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)


@dataclass(frozen=True, slots=True)
class TextForms:
    """The prefixes of the texts that are embedded."""

    question: str = ""
    document: str = ""

    @property
    def name(self) -> str:
        """Both prefixes, quoted, or empty if there are none."""
        if not self.question and not self.document:
            return ""
        return f"{self.question!r} and {self.document!r}"

    def make_questions(self, texts: Sequence[str]) -> list[str]:
        """Return questions with the prefix with which they are embedded."""
        return [self.question + text for text in texts]

    def make_documents(self, texts: Sequence[str]) -> list[str]:
        """Return passages with the prefix with which they are embedded."""
        return [self.document + text for text in texts]


NO_FORMS = TextForms()

FORMS = (
    (re.compile(r"e5-[a-z]+-instruct|e5-mistral|qwen3-embedding"), TextForms(_INSTRUCTION)),
    (re.compile(r"(?<![a-z])e5-(?:small|base|large)"), TextForms("query: ", "passage: ")),
    (re.compile(r"nomic-embed-text"), TextForms("search_query: ", "search_document: ")),
    (re.compile(r"bge-(?:small|base|large)-en|mxbai-embed-large"), TextForms(_SEARCHING)),
    (re.compile(r"arctic-embed-[a-z]+-v2"), TextForms("query: ")),
    (re.compile(r"arctic-embed"), TextForms(_SEARCHING)),
    (
        re.compile(r"embeddinggemma"),
        TextForms("task: search result | query: ", "title: none | text: "),
    ),
)
"""Patterns for lower-case model names; the first one that matches is used."""


class VectorIdentity(NamedTuple):
    """The properties that vectors must have in common to be comparable: model, length, and forms of
    texts.
    """

    model: str
    dimensions: int
    forms: str


def find_forms(model: str) -> TextForms:
    """Return the forms of a model by its name, with or without the organization."""
    name = model.lower()
    return next((forms for pattern, forms in FORMS if pattern.search(name)), NO_FORMS)


def read_forms(name: str) -> TextForms:
    """Return the prefixes quoted in a name of forms, possibly after a vendor's own forms."""
    parts = name.split("; ")
    for start in range(len(parts)):
        try:
            quoted = ast.parse("; ".join(parts[start:]), mode="eval").body
        except SyntaxError:
            continue
        match quoted:
            case ast.BoolOp(ast.And(), [ast.Constant(str(question)), ast.Constant(str(document))]):
                return TextForms(question, document)
    return NO_FORMS

"""The forms of requests for reranking: vendors share one, Text Embeddings Inference has another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class RerankForm:
    """The body of a request: `texts` is the name of the list of texts, `further` is added as is."""

    texts: str = "documents"
    further: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))

    def make_body(self, model: str, question: str, texts: Sequence[str]) -> dict[str, JsonValue]:
        """Return the body of a request."""
        return {"model": model, "query": question, self.texts: list(texts), **self.further}


TEI = RerankForm("texts", MappingProxyType({"truncate": True}))
"""The form of Text Embeddings Inference."""


def choose_other_form(form: RerankForm, rejection: str) -> RerankForm | None:
    """Return the form that a rejected request should have had, or None if it was not the form.

    A server that wants the form of Text Embeddings Inference says that `texts` is missing.
    """
    return TEI if form != TEI and "`texts`" in rejection else None

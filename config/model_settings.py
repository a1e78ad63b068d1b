"""Settings of the models: the model of each task, and limits."""

from pydantic import BaseModel, Field

from config.specialist_settings import SpecialistSettings


class ModelLimit(BaseModel, frozen=True, extra="forbid"):
    """The limits of one model per minute, over all processes, and of one request; None: unknown."""

    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)
    context_window: int | None = Field(None, gt=0)


class ModelSettings(SpecialistSettings):
    """The models; a part of `Settings`."""

    gen_model: str = Field(
        "offline",
        description="the model that answers, `model@provider`; a list is a fallback chain",
    )
    guardrails_model: str = Field(
        "", description="judges whether a question is within the scope; empty: as `GEN_MODEL`"
    )
    quality_model: str = Field("", description="judges answers; empty: as `GEN_MODEL`")
    translation_model: str = Field("", description="translates questions; empty: as `GEN_MODEL`")
    essence_model: str = Field(
        "", description="resolves what a question refers to; empty: as `GEN_MODEL`"
    )
    clarification_model: str = Field("", description="words questions back; empty: as `GEN_MODEL`")
    description_model: str = Field(
        "offline", description="describes documents while ingesting; `offline`: by rules"
    )
    description_concurrency: int = Field(
        4, ge=1, le=64, description="documents that `DESCRIPTION_MODEL` describes at once"
    )
    embedding_model: str = Field(
        "all-MiniLM-L6-v2",
        description="embeds documents and questions; the default is part of Refdesk",
    )
    embedding_dimensions: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="length of the vectors; unset: that of the model. Models that can return "
        "fewer numbers are asked for this many; a model that is not in the table needs it",
    )
    embedding_question_prefix: str | None = Field(
        None,
        description="text before every question that is embedded; unset: by the model's name",
    )
    embedding_document_prefix: str | None = Field(
        None,
        description="text before every passage that is embedded; unset: by the model's name",
    )
    reranker: str = Field(
        "",
        description="orders the best passages of a search: `MODEL@cohere`, `@jina`, "
        "`@voyage`, `@NAME` of `COMPATIBLE_SERVERS`, or `MODEL@fastembed` on this machine; "
        "empty: none",
    )
    reranker_seconds: float = Field(
        2.0,
        gt=0,
        description="how long a search waits for the reranker before it keeps its own order",
    )
    model_limits: dict[str, ModelLimit] = Field(
        {},
        description="requests and tokens a minute per `model@provider`, and its `context_window` "
        "in tokens where the price list does not know it (JSON)",
    )
    combine_calls: bool = Field(
        True,
        description="ask for translation, essence and scope in one call where one model serves "
        "them all",
    )
    embed_early: bool = Field(
        True,
        description="a vendor embeds a question while its combined call or the call for its scope "
        "is under way; false: when the search needs it, which takes longer and wastes nothing",
    )
    model_cache_seconds: int = Field(
        600, ge=0, description="how long questions share answers of models; 0: not at all"
    )
    model_patience_seconds: float = Field(
        5.0,
        gt=0,
        description="how long a chain waits before it also asks the next vendor's model; the first "
        "answer counts",
    )

    @property
    def uses_model(self) -> bool:
        """Whether a model writes the answers; `offline` alone shows what the search finds."""
        return any(name.strip() != "offline" for name in self.gen_model.split(","))

    def model_of(self, task: str) -> str:
        """Return the model, or the fallback chain, of a task."""
        own = {
            "scope": self.guardrails_model,
            "judge": self.quality_model,
            "translate": self.translation_model,
            "understand": self.translation_model,
            "essence": self.essence_model,
            "clarify": self.clarification_model,
            "describe": self.description_model,
            "section_summary": self.description_model,
            "document_summary": self.description_model,
            "hyde_expansion": self.specialists["extractor"].model,
        }.get(task, "")
        if task in self.specialists:
            own = self.specialists[task].model
        return own or self.gen_model

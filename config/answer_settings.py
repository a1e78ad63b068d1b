"""Settings for answers: search, quality checks, clarification rounds, and time limits."""

from typing import Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

CHARACTERS_PER_TOKEN = 4
MOST_SECONDS = 604_800
"""The longest time limit of a question: one week."""


class AnswerSettings(BaseModel):
    """Settings for answers: search, quality checks, rounds, and time limits."""

    search_results_limit: int = Field(
        50,
        ge=1,
        le=100,
        description="maximum number of search results that are shown and passed to the model",
    )
    search_confidence_threshold: float = Field(
        0.3,
        ge=0,
        le=1,
        description="search results with a lower answerability (0 to 1) count as poor: the model "
        "still writes an answer based on them, and the answer says so",
    )
    search_cache_seconds: int = Field(
        600,
        ge=0,
        description="how long a process reuses the results of an identical search while the "
        "documents do not change; 0: no reuse",
    )
    max_context_length: int | None = Field(
        None,
        ge=200,
        description="maximum context of an answer in tokens (a token: 4 bytes of UTF-8), or in "
        "characters with the suffix `c`: `14000c`; a repeated search adds up to half of "
        "it; unset: 6000, or 4000 without a model or with a model whose context window "
        "is below 16,000 tokens",
    )
    history_turns: int = Field(
        6,
        ge=0,
        le=50,
        description="number of previous questions and answers of the conversation "
        "that agents receive",
    )
    max_clarification_rounds: int = Field(
        3, ge=0, description="maximum number of clarifications for one question"
    )
    pause_seconds: int = Field(
        86_400,
        ge=60,
        le=31_536_000,
        description="how long a clarification, a request for information or a request for approval "
        "stays open",
    )
    quality_score_threshold: float = Field(
        0.7, ge=0, le=1, description="minimum score of an approved answer"
    )
    judge: Literal["always", "doubt", "never"] = Field(
        "always",
        description="whether a model judges an answer before it is approved. `doubt`: only if "
        "rules found a fault, something is missing or the model that wrote it was not "
        "confident; `never`: only rules check answers. An answer that was not judged "
        "has no quality score",
    )
    max_research: int = Field(
        2, ge=0, description="maximum number of repeated searches after the quality check"
    )
    max_regenerate: int = Field(
        1, ge=0, description="maximum number of rewritten answers after the quality check"
    )
    release: Literal["checked", "approved"] | None = Field(
        None,
        description="when users see an answer. `checked`: each sentence as soon as it has passed "
        "the checks without a model; sentences that the judge rejects later are visibly "
        "retracted. `approved`: after the judge has approved the answer. Unset: "
        "`checked`, including in Slack and Telegram, but `approved` for chat "
        "completions, which cannot retract text",
    )
    max_process_count: int = Field(
        60, ge=10, description="maximum number of hops (agent runs) of a question"
    )
    budget_model_calls: int = Field(
        0, ge=0, description="maximum number of paid model calls of a question; 0: no limit"
    )
    budget_tool_calls: int = Field(
        50, ge=0, description="maximum number of tool calls of a question; 0: no limit"
    )
    budget_tokens: int = Field(
        0,
        ge=0,
        description="maximum number of input and output tokens of a question's paid model calls; "
        "0: no limit",
    )
    budget_usd: float = Field(
        0.0,
        ge=0,
        description="maximum cost of a question's model calls in USD; a model without a known "
        "price counts as free; 0: no limit",
    )
    budget_tenant_usd: float = Field(
        0.0,
        ge=0,
        description="maximum cost of all model calls of a tenant per day (UTC) in USD; 0: no limit",
    )
    model_timeout_seconds: float = Field(
        30.0,
        gt=0,
        le=86_400,
        description="time limit of one model call. Calls that prepare an answer are limited to a "
        "quarter of it, and a streamed answer must begin within half of it; otherwise "
        "the user sees the passages that the search found. Increase it for a slow "
        "model: the time limits of agents and questions increase accordingly, unless "
        "you set them",
    )
    deadline_seconds: float = Field(
        default_factory=lambda known: max(120.0, 3 * known["model_timeout_seconds"]),
        gt=1,
        le=MOST_SECONDS,
        description="time limit of a question, from its acceptance; default: three times "
        "`MODEL_TIMEOUT_SECONDS`, at least 120",
    )
    job_deadline_seconds: float = Field(
        900.0,
        gt=1,
        le=MOST_SECONDS,
        description="time limit of a review, and of a message that is sent with "
        "`Prefer: respond-async`",
    )
    agent_timeout_seconds: float = Field(
        default_factory=lambda known: min(
            max(60.0, 2 * known["model_timeout_seconds"]), known["deadline_seconds"]
        ),
        gt=0,
        description="time limit of one agent run; default: twice `MODEL_TIMEOUT_SECONDS`, at least "
        "60 and at most `DEADLINE_SECONDS`",
    )

    @field_validator("max_context_length", mode="before")
    @classmethod
    def _convert_characters(cls, value: object) -> object:
        """Convert characters, such as `14000c`, to tokens; other values are unchanged."""
        text = value.strip() if isinstance(value, str) else ""
        if not text.endswith("c") or not text[:-1].isdecimal():
            return value
        return int(text[:-1]) // CHARACTERS_PER_TOKEN

    @model_validator(mode="after")
    def _agents_end_before_the_deadline(self) -> Self:
        if self.agent_timeout_seconds > self.deadline_seconds:
            raise ValueError(
                "expected AGENT_TIMEOUT_SECONDS to be at most DEADLINE_SECONDS, found "
                f"{self.agent_timeout_seconds:g} above {self.deadline_seconds:g}"
            )
        return self

"""Settings of a question on its way: searches, judgements, rounds and time."""

from typing import Self

from pydantic import BaseModel, Field, model_validator


class AnswerSettings(BaseModel):
    """What a question may take until it is answered; a part of `Settings`."""

    search_results_limit: int = Field(10, ge=1, le=100, description="chunks an answer may use")
    search_confidence_threshold: float = Field(
        0.3, ge=0, le=1, description="answerability below this is poor"
    )
    max_context_length: int = Field(4000, ge=200, description="tokens of context for an answer")
    history_turns: int = Field(6, ge=0, le=50, description="turns that agents see")
    max_clarification_rounds: int = Field(3, ge=0, description="questions back for one question")
    quality_score_threshold: float = Field(0.7, ge=0, le=1, description="approvals need this")
    max_research: int = Field(2, ge=0, description="searches more that a judge may ask for")
    max_regenerate: int = Field(1, ge=0, description="answers more that a judge may ask for")
    max_process_count: int = Field(60, ge=10, description="hops after which a question ends")
    deadline_seconds: float = Field(120.0, gt=1, description="of a question, from its acceptance")
    agent_timeout_seconds: float = Field(60.0, gt=0, description="of one run of an agent")
    agent_attempts: int = Field(3, ge=1, description="tries of a failing agent, the first included")

    @model_validator(mode="after")
    def _agents_end_before_the_deadline(self) -> Self:
        if self.agent_timeout_seconds > self.deadline_seconds:
            raise ValueError(
                "expected AGENT_TIMEOUT_SECONDS to be at most DEADLINE_SECONDS, found "
                f"{self.agent_timeout_seconds:g} above {self.deadline_seconds:g}"
            )
        return self

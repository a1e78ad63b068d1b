"""Settings of learning from earlier questions, and of the check of the work."""

from pydantic import BaseModel, Field


class LearningSettings(BaseModel):
    """Outcomes of swarms, and names of models in the check; a part of `Settings`."""

    swarm_learning: bool = Field(
        True,
        description="whether the outcomes of swarms (numbers, no text) are kept for 90 days, and "
        "advise strategy and number of workers; `refdesk swarm stats` shows them",
    )
    model_aliases: dict[str, str] = Field(
        {},
        description="names under which servers of models answer, by the requested name (JSON), "
        'such as `{"my-deployment": "gpt-5"}`; `*`: any name. Dated names need none. An answer by '
        "another model is a fault that the reply names",
    )

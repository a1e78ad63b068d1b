from dataclasses import replace

from llm.port import Task
from llm.prompts import Prompts
from llm.stored_model import digest, fingerprint
from tests.llm.sample_task import COLOUR, SKY, Colour, PlainPrompts, Question


class Shades(Colour, frozen=True):
    shades: int = 0


def of(
    task: Task[Question, Colour] = COLOUR,
    inputs: Question = SKY,
    asked: str = "m",
    prompts: Prompts | None = None,
) -> str:
    return fingerprint(task, inputs, asked=asked, prompts=prompts)


def test_everything_that_decides_about_an_answer_is_in_its_fingerprint() -> None:
    different = [
        of(),
        of(asked="other"),
        of(inputs=Question(text="And the sea?")),
        of(replace(COLOUR, name="other")),
        of(replace(COLOUR, temperature=0.5)),
        of(replace(COLOUR, max_output_tokens=9)),
        of(replace(COLOUR, output=Shades)),
        of(prompts=PlainPrompts()),
    ]

    assert len(set(different)) == len(different)


def test_the_same_thing_has_the_same_fingerprint() -> None:
    assert of() == of(replace(COLOUR), Question(text=SKY.text))


def test_half_a_surrogate_has_a_fingerprint() -> None:
    assert of(inputs=Question(text="\ud800")) != of(inputs=Question(text="\ud801"))


def test_the_boundary_between_two_texts_changes_the_fingerprint() -> None:
    assert digest("ab", "c") != digest("a", "bc")

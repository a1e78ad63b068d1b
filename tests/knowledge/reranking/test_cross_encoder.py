import threading
from collections.abc import Callable

import pytest

from knowledge.errors import RerankingFailed
from knowledge.search.reranking import RELOAD_SECONDS, CrossEncoder, Score

SECONDS = 10.0


def count_characters(_question: str, passages: list[str]) -> list[float]:
    return [float(len(passage)) for passage in passages]


def make_encoder(score: Score, seconds: float = SECONDS) -> CrossEncoder:
    return CrossEncoder("m@fastembed", lambda: score, seconds)


async def test_passages_get_their_scores_in_order() -> None:
    assert list(await make_encoder(count_characters).score("question", ["long", "a"])) == [4.0, 1.0]


async def test_a_question_does_not_wait_for_a_model_that_is_busy_and_the_next_one_is_served() -> (
    None
):
    goes_on = threading.Event()

    def wait(question: str, passages: list[str]) -> list[float]:
        if question == "slow":
            goes_on.wait(SECONDS)
        return count_characters(question, passages)

    slow = make_encoder(wait, 0.05)

    for question in ("slow", "behind it"):
        with pytest.raises(RerankingFailed, match=r"within 0\.05 s"):
            await slow.score(question, ["a"])
    goes_on.set()
    await slow.warm()
    assert list(await slow.score("quick", ["a"])) == [1.0]


@pytest.mark.parametrize(
    "score",
    [lambda _question, _passages: [1.0], lambda _question, passages: passages[9]],
    ids=["too few", "an error"],
)
async def test_an_error_of_the_model_is_a_failure_of_the_reranker(score: Score) -> None:
    with pytest.raises(RerankingFailed, match="'m@fastembed'"):
        await make_encoder(score).score("question", ["a", "b"])


async def test_a_model_that_cannot_be_loaded_is_tried_again_later_and_not_by_every_search() -> None:
    now, loads = [0.0], list[float]()

    def load() -> Callable[[str, list[str]], list[float]]:
        loads.append(now[0])
        if len(loads) == 1:
            raise OSError("no network")
        return count_characters

    loading = CrossEncoder("m@fastembed", load, SECONDS, clock=lambda: now[0])

    with pytest.raises(RerankingFailed, match="could not be loaded: no network"):
        await loading.warm()
    with pytest.raises(RerankingFailed, match="could not be loaded: no network"):
        await loading.score("question", ["a"])
    now[0] = RELOAD_SECONDS
    assert list(await loading.score("question", ["a"])) == [1.0]
    assert loads == [0.0, RELOAD_SECONDS]

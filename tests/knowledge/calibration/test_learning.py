from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from knowledge.calibration.learning import REFERENCES, fit_line, learn_calibrations
from knowledge.calibration.queries import find_foreign_questions, list_question_languages
from knowledge.index.calibration import Calibration, Calibrations
from knowledge.index.embedded import open_embedded
from knowledge.index.points.layout import Point, calibration_identity
from knowledge.index.points.point_decoder import read_calibrations
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity
from tests.knowledge.searching.conftest import DIMENSIONS, WordEmbedder, document

SUBJECTS = ("invoices", "contracts", "numbers", "callers", "queues", "holidays", "agents", "rates")
VERBS = ("expire", "renew", "arrive", "stop", "restart", "repeat", "merge", "close")


class ScaledEmbedder(WordEmbedder):
    """Embeds as `WordEmbedder`, with a common part that lifts every cosine by `lift`."""

    def __init__(self, lift: float) -> None:
        super().__init__()
        self.dimensions = DIMENSIONS + 1
        self._lift = lift

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = await super().embed(texts)
        own = (1 - self._lift) ** 0.5
        return [[*(own * value for value in vector), self._lift**0.5] for vector in vectors]


class TranslatingEmbedder(ScaledEmbedder):
    """Embeds an everyday question of any language as its English translation."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        english = find_foreign_questions("en")
        translated = {
            text: english[place]
            for language in list_question_languages()
            for place, text in enumerate(find_foreign_questions(language))
        }
        return await super().embed([translated.get(text, text) for text in texts])


async def open_library(folder: Path, embedder: ScaledEmbedder) -> Index:
    index = await open_embedded(folder, Identity("tenant", "desk", "words", DIMENSIONS + 1))
    for subject in SUBJECTS:
        texts = [f"The {subject} of a customer {verb} on the first day of May." for verb in VERBS]
        made = document(subject, *texts, title=f"About {subject}")
        await index.put(made, await embedder.embed_documents(texts), "root")
    return index


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Index]:
    index = await open_library(tmp_path / "plain", ScaledEmbedder(0.0))
    yield index
    await index.close()


async def learn(index: Index, embedder: WordEmbedder) -> Calibrations:
    learned = await learn_calibrations(index, embedder, await index.calibrations())
    await index.put_calibrations(learned)
    return learned


async def test_two_scales_of_one_model_are_brought_to_the_same(
    tmp_path: Path, library: Index
) -> None:
    plain = (await learn(library, ScaledEmbedder(0.0)))["en"]
    lifted_library = await open_library(tmp_path / "lifted", ScaledEmbedder(0.9))
    lifted = (await learn(lifted_library, ScaledEmbedder(0.9)))["en"]
    await lifted_library.close()

    for cosine in (0.0, 0.3, 0.9):
        same = plain.rescale({"dense1": cosine}), lifted.rescale({"dense1": 0.9 + 0.1 * cosine})
        assert same[0]["dense1"] == pytest.approx(same[1]["dense1"], abs=1e-3)
    assert lifted.separation == pytest.approx(plain.separation, abs=0.01)
    assert plain.is_usable


async def test_a_learned_calibration_is_read_again_and_every_change_is_seen(library: Index) -> None:
    before = await library.revision()
    learned = await learn(library, ScaledEmbedder(0.0))

    assert dict(await library.calibrations()) == dict(learned)
    assert await library.revision() != before


async def test_a_calibration_returns_to_its_last_bit(library: Index) -> None:
    # The embedded engine returns most of these numbers with another last bit.
    lines = {
        f"l{number}": Calibration(number / 7, -0.015119224580926184 / number, number / 97, number)
        for number in range(1, 65)
    }

    await library.put_calibrations(lines)

    assert dict(await library.calibrations()) == lines


def test_the_calibrations_of_an_earlier_release_are_read() -> None:
    stored = {"slope": 1.5, "offset": -0.25, "separation": 1.0, "chunks": 40}
    point = Point(calibration_identity(), {"languages": {"en": stored}})

    assert read_calibrations(point) == {"en": Calibration(1.5, -0.25, 1.0, 40)}


async def test_documents_that_change_little_are_not_embedded_again(library: Index) -> None:
    await learn(library, ScaledEmbedder(0.0))
    embedder = ScaledEmbedder(0.0)
    more = document("more", *(f"Agents {verb} at noon." for verb in VERBS))
    await library.put(more, await ScaledEmbedder(0.0).embed_documents([""] * len(VERBS)), "root")

    assert (await learn(library, embedder))["en"].chunks == 64
    assert embedder.asked == []
    await library.remove(SUBJECTS[:4])
    assert (await learn(library, embedder))["en"].chunks == 40
    paired, learned = embedder.asked
    assert len(paired) > len(list_question_languages())
    assert learned


async def test_a_language_with_few_chunks_has_no_line(library: Index) -> None:
    german = document("urlaub", "Urlaub ist lang.", language="de")
    await library.put(german, await ScaledEmbedder(0.0).embed_documents(["x"]), "root")

    learned = await learn(library, ScaledEmbedder(0.0))

    assert not learned["de"].is_usable
    assert learned["en"].is_usable


async def test_a_model_that_knows_words_alone_compares_no_two_languages(library: Index) -> None:
    learned = await learn(library, ScaledEmbedder(0.0))

    assert learned["en"].compares("en")
    assert not any(learned["en"].compares(text) for text in ("ko", "zh", "tr", "th"))


async def test_a_model_that_finds_every_translation_compares_any_language(library: Index) -> None:
    learned = await learn_calibrations(library, TranslatingEmbedder(0.0), {})

    assert all(learned["en"].compares(text) for text in ("en", "ko", "th"))


def test_the_line_through_the_references_changes_nothing() -> None:
    assert fit_line(REFERENCES) == pytest.approx((1.0, 0.0))
    assert fit_line((0.5, 0.5, 0.5))[0] == 0.0

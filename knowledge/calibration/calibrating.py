"""Calibrates an index after an ingestion, and reports why it could not be calibrated."""

from collections.abc import Sequence

import structlog

from knowledge.answerability import ENGLISH_NOTE, UNCALIBRATED_NOTE, find_uncalibrated
from knowledge.embedding import DEFAULT, SHIPPED_NAMES, Embedder
from knowledge.errors import EmbeddingFailed
from knowledge.index.port import Index

log = structlog.get_logger("knowledge")


async def calibrate(index: Index, embedder: Embedder) -> Sequence[tuple[str, str]]:
    """Calibrate the cosines for the current documents; return notes for the operator.

    The shipped model is not calibrated, because its weights were fitted to English documents, and
    in other languages words alone lead to better decisions. If questions cannot be embedded, the
    previous calibrations are kept.
    """
    if embedder.name not in SHIPPED_NAMES:
        # Imported here: only ingestions calibrate.
        from knowledge.calibration.learning import learn_calibrations

        known = await index.calibrations()
        try:
            learned = await learn_calibrations(index, embedder, known)
        except EmbeddingFailed as error:
            log.warning("calibration_failed", embedding=embedder.name, error=str(error))
            reason = f"the embedding model could not be calibrated: {error}"
            return (f"EMBEDDING_MODEL={embedder.name}", reason), *await find_notes(index)
        if dict(learned) != dict(known):
            await index.put_calibrations(learned)
    return await find_notes(index)


async def find_notes(index: Index) -> Sequence[tuple[str, str]]:
    """Return the setting of the embedding model with a note, if the operator can do something.

    Nothing can be done for a language with too few chunks to calibrate the model.
    """
    embedding = (await index.info()).embedding
    missing = await _find_uncalibrated(index, embedding)
    if not missing:
        return ()
    where = f", documents in {', '.join(sorted(missing))}"
    note = ENGLISH_NOTE if embedding in SHIPPED_NAMES else UNCALIBRATED_NOTE
    setting = DEFAULT if embedding in SHIPPED_NAMES else embedding
    return ((f"EMBEDDING_MODEL={setting}{where}", note),)


async def log_uncalibrated(index: Index) -> None:
    """Log the languages for which a new ingestion can calibrate the embedding model."""
    embedding = (await index.info()).embedding
    missing = () if embedding in SHIPPED_NAMES else await _find_uncalibrated(index, embedding)
    if missing:
        log.warning(
            "embedding_model_not_calibrated", embedding=embedding, languages=sorted(missing)
        )


async def _find_uncalibrated(index: Index, embedding: str) -> tuple[str, ...]:
    """Return the languages of documents that have no calibration but could get one.

    Every ingestion tries to calibrate each language, but cannot learn from too few chunks.
    """
    known = await index.calibrations()
    missing = find_uncalibrated(embedding, await index.languages(), known)
    return tuple(
        language for language in missing if embedding in SHIPPED_NAMES or language not in known
    )

"""The records of a run of the swarm, so that each result can be checked afterwards.

A *receipt* is written where the work is done: by the executor of tools, by the client of models, by
the worker when it returns. A *stage* has what went into a hop and what it wrote. Digests are of the
canonical JSON of a value, so that an altered value cannot have the digest of the real one.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum

from pydantic import BaseModel, JsonValue


class ReceiptKind(StrEnum):
    """The work that a receipt is for."""

    TOOL = "tool"
    MODEL = "model"
    WORKER = "worker"


class WorkReceipt(BaseModel, frozen=True, extra="forbid"):
    """Evidence of one piece of work.

    `digest` is that of its result; `sources` are the ids of the chunks that it returned. For a
    model `requested` is the model that was configured and `answered_by` the one that answered.
    """

    work_id: str
    kind: ReceiptKind
    stage: str
    digest: str
    sources: tuple[str, ...] = ()
    requested: str = ""
    answered_by: str = ""


class StageReport(BaseModel, frozen=True, extra="forbid"):
    """What a stage reports: the work that it claims, the results that it used, and its sources.

    `used` has the digests of the results as the stage saw them, by the id of their work.
    `context_version` is the version of the payload that the stage read, `expected_version` the one
    that the manager sent. `expected` are the ids of work whose results should have arrived.
    """

    stage: str
    claimed: tuple[str, ...] = ()
    used: dict[str, str] = {}
    cited: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    context_version: int = 0
    expected_version: int = 0


def compute_digest(value: JsonValue | BaseModel) -> str:
    """Return the SHA-256 of the canonical JSON of a value."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_receipt(
    work_id: str,
    kind: ReceiptKind,
    stage: str,
    result: JsonValue | BaseModel,
    *,
    sources: tuple[str, ...] = (),
    models: tuple[str, str] = ("", ""),
) -> WorkReceipt:
    """Return the receipt of a piece of work; `models` are the requested and the answering one."""
    return WorkReceipt(
        work_id=work_id,
        kind=kind,
        stage=stage,
        digest=compute_digest(result),
        sources=sources,
        requested=models[0],
        answered_by=models[1],
    )


def digest_results(results: Mapping[str, JsonValue | BaseModel]) -> dict[str, str]:
    """Return the digests of results as a stage received them, by the id of their work."""
    return {work_id: compute_digest(result) for work_id, result in results.items()}

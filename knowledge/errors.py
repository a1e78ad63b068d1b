"""The errors of knowledge.

KnowledgeError                  the root
|-- IndexUnavailable            the index cannot be reached or opened: wait, or check its location
|   `-- IndexOwned              another process owns the embedded index: use a Qdrant server
|-- IndexMismatch               the index was written with a different embedding model or format
|-- SourceError                 the name of a source is invalid, or the list of sources is damaged
|-- ConnectorError              a document source cannot be opened: its documents are kept
|-- IngestionStopped            an ingestion was stopped: the next one continues
|-- EmbeddingFailed             texts could not be embedded: search by keywords
`-- RerankingFailed             passages could not be scored: their order is kept
"""

from knowledge.embedding_forms import VectorIdentity


class KnowledgeError(Exception):
    """The root of all errors of this package."""


class IndexUnavailable(KnowledgeError):  # noqa: N818 - names a state
    """The index cannot be reached or opened."""


class IndexOwned(IndexUnavailable):
    """Another process owns the embedded index."""


class IngestionStopped(KnowledgeError):  # noqa: N818 - as above
    """An ingestion was stopped; everything written until then is kept."""


class IndexMismatch(KnowledgeError):  # noqa: N818 - as above
    """The index was written with a different embedding model or in a different format.

    `written` identifies its vectors; None means that its format is different.
    """

    def __init__(self, message: str, written: VectorIdentity | None = None) -> None:
        super().__init__(message)
        self.written = written


class EmbeddingFailed(KnowledgeError):  # noqa: N818 - as above
    """Texts could not be embedded."""


class RerankingFailed(KnowledgeError):  # noqa: N818 - as above
    """A reranker returned no scores, or not in time."""


class SourceError(KnowledgeError):
    """The name of a source is invalid, or the list of sources is damaged."""


class ConnectorError(KnowledgeError):
    """A document source cannot be opened; `source` is its name, and the message states the
    reason.
    """

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(reason)
        self.source = source

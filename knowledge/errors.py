"""The errors of knowledge.

KnowledgeError                  the root
|-- IndexUnavailable            the index cannot be reached or opened: wait, or check its location
|   `-- IndexOwned              another process owns the embedded index: use a Qdrant server
|-- IndexMismatch               the index was written with another embedding model or format
|-- SourceError                 a source cannot be named like this, or their list is damaged
|-- ConnectorError              a source of documents cannot be opened: its documents stay
|-- IngestionStopped            somebody stopped an ingestion: the next one goes on
|-- EmbeddingFailed             texts could not be embedded: search by keywords
`-- RerankingFailed             passages could not be scored: their order stays
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
    """The index was written with another embedding model or in another format.

    `written` identifies its vectors; None: its format is another one.
    """

    def __init__(self, message: str, written: VectorIdentity | None = None) -> None:
        super().__init__(message)
        self.written = written


class EmbeddingFailed(KnowledgeError):  # noqa: N818 - as above
    """Texts could not be embedded."""


class RerankingFailed(KnowledgeError):  # noqa: N818 - as above
    """A reranker gave no scores, or not in time."""


class SourceError(KnowledgeError):
    """A source cannot be named like this, or the list of sources is damaged."""


class ConnectorError(KnowledgeError):
    """A source of documents cannot be opened; `source` names it, the message gives the reason."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(reason)
        self.source = source

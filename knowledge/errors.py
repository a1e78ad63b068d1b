"""The errors of knowledge.

KnowledgeError                  the root
|-- IndexUnavailable            the index cannot be reached or opened: wait, or check its location
|   `-- IndexOwned              another process owns the embedded index: use a Qdrant server
|-- IndexMismatch               the index was written with another embedding model or format
`-- EmbeddingFailed             texts could not be embedded: search by keywords
"""


class KnowledgeError(Exception):
    """The root of all errors of this package."""


class IndexUnavailable(KnowledgeError):  # noqa: N818 - names a state
    """The index cannot be reached or opened."""


class IndexOwned(IndexUnavailable):
    """Another process owns the embedded index."""


class IndexMismatch(KnowledgeError):  # noqa: N818 - as above
    """The index was written with another embedding model or in another format."""


class EmbeddingFailed(KnowledgeError):  # noqa: N818 - as above
    """Texts could not be embedded."""

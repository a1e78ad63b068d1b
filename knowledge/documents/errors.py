"""Errors of documents, classified by what their owner can do."""

from knowledge.errors import KnowledgeError


class ReadingError(KnowledgeError):
    """A document cannot be read; the message states what was expected and what was found."""


class NotTextError(ReadingError):
    """The bytes are not text."""


class NoTextError(ReadingError):
    """The document contains no readable text."""


class PicturesError(ReadingError):
    """The pages of the document are pictures in which no text was recognised."""


class NoDocumentError(ReadingError):
    """The file is data or configuration, not a document."""


class SkippedError(ReadingError):
    """The document cannot be opened and is skipped; the message states what to do."""


class WrongFormatError(ReadingError):
    """The file name and the content have different formats, or the content is damaged."""


class TooLargeError(ReadingError):
    """The document has more bytes, pages or text than allowed."""


class TooSlowError(ReadingError):
    """Reading the document took longer than allowed."""


class TooMuchMemoryError(ReadingError):
    """Reading the document needed more memory than allowed."""


class ReaderDiedError(ReadingError):
    """The process that read the document ended before it returned a result."""


class UnforeseenError(ReadingError):
    """A reader failed in an unexpected way."""


class MissingExtraError(ReadingError):
    """An optional dependency that reads this format is not installed."""


def explain_failure(error: Exception) -> str:
    """Return why a file cannot be read, without its path on this machine."""
    if isinstance(error, OSError):
        return f"the file cannot be read: {error.strerror}"
    return str(error)

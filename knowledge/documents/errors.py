"""Errors of documents, classified by what their owner can do.

ReadingError
├── NotTextError        the bytes are not text
├── NoTextError         the document is empty or contains no text
├── PicturesError       the pages are pictures in which no text was recognised
├── NoDocumentError     the file is data or configuration, not a document
├── SkippedError        protected by a password, or format not supported
├── WrongFormatError    the file name and the content have different formats
├── UnknownShapeError   JSON lines whose keys match no known schema
├── TooLargeError       more bytes, pages or text than allowed
├── TooSlowError        reading took longer than allowed
├── TooMuchMemoryError  reading needed more memory than allowed
├── ReaderDiedError     the reading process ended
├── UnforeseenError     a reader failed unexpectedly
└── MissingExtraError   an optional dependency reads this format
"""

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


class UnknownShapeError(ReadingError):
    """The keys of a JSON line match no known schema."""


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

"""Errors of a document, by the action that its owner can take.

ReadingError
├── NotTextError        the bytes are not text: it is another kind of file
├── NoTextError         it is empty, or has no text
├── PicturesError       its pages are pictures, which are not read
├── NoDocumentError     it is data or configuration, not a document
├── SkippedError        a password protects it, or its format is not supported
├── WrongFormatError    name and content are of different formats
├── UnknownShapeError   JSON lines with keys of no known shape
├── TooLargeError       more bytes, pages or text than allowed
├── TooSlowError        reading took longer than allowed
├── TooMuchMemoryError  reading needed more memory than allowed
├── ReaderDiedError     the reading process ended
├── UnforeseenError     a reader failed unexpectedly
└── MissingExtraError   an optional dependency reads this format
"""

from knowledge.errors import KnowledgeError


class ReadingError(KnowledgeError):
    """A document cannot be read; the message names the expected and the found."""


class NotTextError(ReadingError):
    """The bytes are not text."""


class NoTextError(ReadingError):
    """Nothing readable is in the document."""


class PicturesError(ReadingError):
    """The pages of the document are pictures in which no text was recognised."""


class NoDocumentError(ReadingError):
    """The file is data or configuration and no document."""


class SkippedError(ReadingError):
    """The document cannot be opened: it is skipped, and the message states what to do."""


class WrongFormatError(ReadingError):
    """Name and content are of different formats, or the content is damaged."""


class UnknownShapeError(ReadingError):
    """A line of JSON whose keys are none of the known shapes."""


class TooLargeError(ReadingError):
    """The document has more bytes, pages or text than a document may have."""


class TooSlowError(ReadingError):
    """Reading the document took longer than it may."""


class TooMuchMemoryError(ReadingError):
    """Reading the document needed more memory than it may."""


class ReaderDiedError(ReadingError):
    """The process that read the document ended before it answered."""


class UnforeseenError(ReadingError):
    """A reader failed in a way that no code expects."""


class MissingExtraError(ReadingError):
    """An optional dependency that reads this format is not installed."""

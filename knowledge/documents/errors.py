"""What can be wrong with a document, told apart by what its owner can do.

ReadingError
├── NotTextError        the bytes are not text: it is another kind of file
├── NoTextError         nothing readable is in it
├── WrongFormatError    the name says one format, the content says another
├── UnknownShapeError   JSON lines whose keys are none of the known shapes
├── TooLargeError       more bytes, pages or text than a document may have
├── TooSlowError        reading took longer than it may
├── TooMuchMemoryError  reading needed more memory than it may
├── ReaderDiedError     the process that read it ended
├── UnforeseenError     a reader failed in a way that nobody foresaw
└── MissingExtraError   an optional dependency reads this format
"""

from knowledge.errors import KnowledgeError


class ReadingError(KnowledgeError):
    """A document cannot be read; the message names what was expected and found."""


class NotTextError(ReadingError):
    """The bytes are not text."""


class NoTextError(ReadingError):
    """Nothing readable is in the document."""


class WrongFormatError(ReadingError):
    """The name says one format, the content says another, or is damaged."""


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
    """A reader failed in a way that nobody foresaw."""


class MissingExtraError(ReadingError):
    """An optional dependency that reads this format is not installed."""

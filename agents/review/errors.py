"""The errors of this package.

ReviewError
├── ChecklistError      a checklist that is no checklist
├── EmptyDocumentError  a document without text
├── ReportFormatError   a stored report that is no report
└── MissingPdfLibraryError  `agents.review.report.pdf_report`: the optional library is missing
"""


class ReviewError(Exception):
    """The root; its text is for people."""


class ChecklistError(ReviewError):
    """A text that is no checklist; the message states the expected and the found."""


class EmptyDocumentError(ReviewError):
    """A document in which there is nothing to read."""


class ReportFormatError(ReviewError):
    """A stored report that is no report; the message states the expected."""

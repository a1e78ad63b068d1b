"""The errors of this package.

ComplianceError
├── ChecklistError      a checklist that is no checklist
├── EmptyDocumentError  a document without text
├── ReportFormatError   a stored report that is no report
└── MissingPdfLibraryError  `compliance.reporting.pdf_report`: the optional library is missing
"""


class ComplianceError(Exception):
    """The root; its text is for people."""


class ChecklistError(ComplianceError):
    """A text that is no checklist; the message states the expected and the found."""


class EmptyDocumentError(ComplianceError):
    """A document in which there is nothing to read."""


class ReportFormatError(ComplianceError):
    """A stored report that is no report; the message states the expected."""

"""Reads and writes reports as JSON, so that they can be stored and rendered later."""

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from agents.review.errors import ReportFormatError
from agents.review.report.report import ReviewReport
from citations.printed_report import PrintedReport

_PRINTED = TypeAdapter(PrintedReport)
_OBJECT = TypeAdapter(dict[str, object])
_PARTS = "parts"
"""An attribute that only reports of earlier versions have: they were stored as they are printed."""


def encode_report(report: ReviewReport) -> bytes:
    """Return a report as JSON."""
    return report.model_dump_json().encode()


def decode_report(value: bytes | str | Mapping[str, object]) -> ReviewReport | PrintedReport:
    """Return the report of a JSON text or object; raises `ReportFormatError`.

    Reports of earlier versions are returned as they are printed.
    """
    try:
        found = value if isinstance(value, Mapping) else _OBJECT.validate_json(value)
        if _PARTS in found:
            return _PRINTED.validate_python(found)
        return ReviewReport.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "a report"
        raise ReportFormatError(f"expected {where} of a report: {first['msg']}") from None

"""Reads and writes reports as JSON, so that they can be stored and rendered later."""

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from compliance.errors import ReportFormatError
from compliance.reporting.report import ReviewReport

_REPORT = TypeAdapter(ReviewReport)


def encode_report(report: ReviewReport) -> bytes:
    """Return a report as JSON."""
    return _REPORT.dump_json(report)


def decode_report(value: bytes | str | Mapping[str, object]) -> ReviewReport:
    """Return the report of a JSON text or object; raises `ReportFormatError`."""
    try:
        if isinstance(value, Mapping):
            return _REPORT.validate_python(value)
        return _REPORT.validate_json(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "a report"
        raise ReportFormatError(f"expected {where} of a report: {first['msg']}") from None

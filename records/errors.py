"""Errors of the records."""


class RecordsUnavailableError(Exception):
    """The database of the records does not answer."""


class RecordsUrlError(ValueError):
    """`RECORDS_URL` names no database that can be used."""


class RecordRefusedError(Exception):
    """The database does not accept the values of a record."""

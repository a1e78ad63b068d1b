"""Errors of a crawl.

CrawlError
├── AddressRefusedError   the address may not be opened: a private network, or no address at all
└── FetchError            the server cannot be reached, or its answer cannot be used
"""

from knowledge.errors import KnowledgeError


class CrawlError(KnowledgeError):
    """A website cannot be crawled; the message names the expected and the found."""


class AddressRefusedError(CrawlError):
    """An address that a crawl may not open."""


class FetchError(CrawlError):
    """A page cannot be fetched: its server cannot be reached, or sends too much, or too slowly."""

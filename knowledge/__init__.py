"""Reads documents, writes them into an index, and searches it.

`documents` reads files, `ingestion` brings them into an `index`, `search` finds chunks by four
levels, and `language` detects the language of a text. `isolation` runs readers in a process with
limits.
"""

"""Reads documents, writes them into an index, and searches it.

`documents` reads files, `ingestion` writes them into an `index`, `search` finds chunks on four
levels, and `language` detects the language of a text. `isolation` runs file readers in a process
with limits.
"""

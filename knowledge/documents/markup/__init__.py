"""Readers of markup: Markdown, MDX, HTML and reStructuredText."""

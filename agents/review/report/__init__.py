"""The report of a review, in Markdown, HTML and PDF."""

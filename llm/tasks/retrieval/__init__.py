"""Tasks that prepare retrieval: wordings for a search, and summaries of long pages."""

"""The edges between passages, which ingestion writes and `graph_search` follows."""

"""The edges between passages, which are written during ingestion and followed by `graph_search`."""

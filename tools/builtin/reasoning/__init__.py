"""Tools that work on found passages: arithmetic, checks, summaries."""

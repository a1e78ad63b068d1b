"""From bytes to pages: one file per format, and the walk over a folder."""

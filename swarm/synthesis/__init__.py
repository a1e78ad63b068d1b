"""Merges what workers found into one report: claims with worker and source, and gaps."""

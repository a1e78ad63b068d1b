"""What an ingestion asks models for: descriptions of pages, and vectors with their cost."""

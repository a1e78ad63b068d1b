"""Keeps the ids and the embeddings of documents whose files were moved."""

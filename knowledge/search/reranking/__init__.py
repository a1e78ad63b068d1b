"""Reranking: a model that reads question and passage together orders the best candidates."""

"""Clients for model providers: completions, tool calls, embeddings, and reranking."""

"""Who is asked: OpenAI, Google, servers of one's own; embeddings of the vendors."""

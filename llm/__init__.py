"""Who is asked: OpenAI, Google, offline rules; embeddings of the vendors."""

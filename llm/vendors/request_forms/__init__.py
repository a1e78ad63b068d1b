"""The forms of requests and replies: of conversations with tools, and of rerankers."""

"""Conversations with models that call tools: messages, steps, and the port of models."""

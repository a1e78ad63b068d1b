"""Connects the tools of an assistant with what they need."""

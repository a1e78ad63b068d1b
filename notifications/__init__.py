"""Notifies other programs and people: webhooks, and the hand-over of conversations."""

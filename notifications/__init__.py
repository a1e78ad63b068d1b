"""Tells other programs and people what happened at the desk: webhooks, and hand-over."""

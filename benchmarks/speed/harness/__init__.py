"""Runs the systems in processes and measures them."""

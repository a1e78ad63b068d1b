"""Learns from earlier questions: which strategy and how many workers did well."""

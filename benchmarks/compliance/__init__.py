"""Fits the weights of verdicts, of citations and of reported acts to reviewed documents."""

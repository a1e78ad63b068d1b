"""Answers that are more than one quotation: calculations, comparisons, several questions."""

"""Reads PDF by its layout: text with positions and sizes becomes headings, text and tables."""

"""Reads PDF by its layout: converts text with positions and sizes to headings, text and tables."""

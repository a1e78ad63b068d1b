"""Reads PDF by its layout: text with places and sizes becomes headings, text and tables."""

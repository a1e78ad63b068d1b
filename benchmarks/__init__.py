"""Measurements, side by side in one run: of speed, of size, and of the quality of answers."""

"""Checks of what models word that no source can be shown for."""

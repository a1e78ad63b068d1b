"""Reads what pages and folders state about documents: titles, languages, groups, versions."""

"""Readers of files that programs exchange: e-mail, API descriptions, tables, records."""

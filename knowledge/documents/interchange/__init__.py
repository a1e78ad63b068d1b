"""Readers of files that programs exchange: e-mail, descriptions of interfaces, tables, records."""

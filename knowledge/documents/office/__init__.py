"""Readers of office files: zipped XML as Word, Excel, PowerPoint and e-books have it."""

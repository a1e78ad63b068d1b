"""Readers of office files, which are zipped XML: Word, Excel, PowerPoint, OpenDocument and
e-books.
"""

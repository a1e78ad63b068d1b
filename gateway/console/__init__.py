"""The console: web pages on which the owner sees questions, gaps, documents and operational
data.
"""

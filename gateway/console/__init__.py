"""The console: web pages for the owner about questions, gaps, documents and operation."""

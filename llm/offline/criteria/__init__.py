"""Criteria that questions set for documents, and whether the text of a document meets them."""

"""The documents of the assistants: indexed documents, accessed here or through the index's owner,
and uploads.
"""

"""The context of an answer: the parts of documents that a model reads."""

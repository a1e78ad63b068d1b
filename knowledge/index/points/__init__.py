"""The points of an index: their layout, and the conversion of documents to points and back."""

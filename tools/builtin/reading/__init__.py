"""Tools that read documents: lists, whole documents, comparisons."""

"""What is known: documents become an index, the index answers searches."""

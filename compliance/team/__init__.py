"""What specialists share: units and parts of documents, the scope of a review, stored results."""

"""Opens archives of documents, and restores the pages of exports of other products."""

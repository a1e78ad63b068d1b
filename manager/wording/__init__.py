"""The texts of replies that no agent writes."""

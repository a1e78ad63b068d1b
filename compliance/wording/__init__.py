"""The words of rules: cues of duties and bans, concepts that synonyms share."""

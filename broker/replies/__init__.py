"""Reading: final replies, journals and transcripts of questions."""

"""What is read of questions: final replies, journals, transcripts, status."""

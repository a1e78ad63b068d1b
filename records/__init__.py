"""What happened to questions, kept for the owner of the desk in a database, apart from delivery."""

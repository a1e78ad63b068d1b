"""Shows the measures of answers: as tables on a terminal, and as a page."""

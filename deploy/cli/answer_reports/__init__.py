"""Shows the measures of answers: tables for a terminal, and a page."""

"""Reading: entries of streams become deliveries that are leased until they are settled."""

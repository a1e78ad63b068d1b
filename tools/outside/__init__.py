"""Tools of others, by configuration: their files, their schemas, and the form of their results."""

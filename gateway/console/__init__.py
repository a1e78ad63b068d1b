"""The console: web pages on which the owner of the desk sees what happened to the questions."""

"""How messages of chat platforms become questions of the desk."""

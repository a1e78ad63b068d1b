"""The forms of vendors for conversations with tools."""

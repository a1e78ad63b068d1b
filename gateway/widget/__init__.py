"""The chat widget, which consists of plain JavaScript for a page and the routes that serve it."""

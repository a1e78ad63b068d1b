"""The chat widget: plain JavaScript for a page, and the routes that serve it."""

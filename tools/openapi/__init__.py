"""Tools from operations of HTTP interfaces that an OpenAPI 3 document describes."""

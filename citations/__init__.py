"""Citations of sources, and the links and addresses that an answer may contain."""

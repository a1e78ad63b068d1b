"""Who decides: the flow table and its pure machine."""

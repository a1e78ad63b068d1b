"""The refdesk command."""

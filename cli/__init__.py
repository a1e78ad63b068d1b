"""The `refdesk` command."""

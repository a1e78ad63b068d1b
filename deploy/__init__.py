"""The `refdesk` command, the assembly of all parts, evaluation, and generated files."""

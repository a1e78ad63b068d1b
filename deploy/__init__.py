"""How it is put together and run: the `refdesk` command and the assembly."""

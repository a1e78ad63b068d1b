"""What an index needs while it is written, or replaced by another one."""

"""The subcommands, one file each, with `add_arguments(parser)` and `run(chosen) -> status`."""

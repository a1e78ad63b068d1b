"""The verbs of the command, one file each: `add_arguments(parser)` and `run(chosen) -> status`."""

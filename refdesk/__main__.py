"""Starts the `refdesk` command with the application's packages first on the module path."""

import sys
from pathlib import Path

APP = Path(__file__).with_name("app")
"""Where a wheel has the packages; a checkout has them beside this package instead."""


def main() -> int:
    """Run the command and return its exit status."""
    sys.path.insert(0, str(APP if APP.is_dir() else APP.parent.parent))
    from cli.main import main as run_command

    return run_command()


if __name__ == "__main__":
    sys.exit(main())

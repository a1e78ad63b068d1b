"""Starts the `refdesk` command with the application's packages first on the module path.

Nothing is imported from the working directory, neither here nor in the Python processes that this
one starts: whoever can write a file there must not be able to run code as Refdesk.
"""

# These two are loaded already when Python starts. With `python -m refdesk`, any other import before
# `_leave_out_working_directory` could come from the working directory.
import os
import sys

APP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "app")
"""Where a wheel has the packages; a checkout has them beside this package instead."""


def main() -> int:
    """Run the command and return its exit status."""
    prepare_module_path()
    from cli.main import main as run_command

    return run_command()


def prepare_module_path() -> None:
    """Put the application's packages first, and leave the working directory out."""
    is_wheel = os.path.isdir(APP)
    root = APP if is_wheel else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _leave_out_working_directory()
    sys.path.insert(0, root)
    # The fork server of workers and the resource tracker of `multiprocessing` are started with
    # `-c`, and without this variable they would search the working directory first.
    os.environ["PYTHONSAFEPATH"] = "1"


def _leave_out_working_directory() -> None:
    """Remove the working directory from the module path, also one that `PYTHONPATH` names."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it has been deleted: nothing can be imported from it
        here = ""
    # The command may be started in the folder of the installed packages or the standard library.
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    kept = {os.path.realpath(path) for path in (*installed, os.path.dirname(os.__file__))}
    sys.path[:] = [path for path in sys.path if path and _is_kept(path, here, kept)]


def _is_kept(path: str, here: str, kept: set[str]) -> bool:
    place = os.path.realpath(path)
    return place != here or place in kept


if __name__ == "__main__":
    sys.exit(main())

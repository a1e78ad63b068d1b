"""What the tests of the command share with the tests of a whole desk."""

from tests.desk.conftest import _settings_of_our_own, library

__all__ = ["_settings_of_our_own", "library"]

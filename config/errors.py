"""Errors of the configuration.

ConfigError
├── SettingsError   a setting has an invalid value
├── PromptError     a prompt file is missing, or uses a variable that its task does not have
└── TextsError      a fixed text is missing
"""


class ConfigError(Exception):
    """The root of all errors of this package."""


class SettingsError(ConfigError):
    """A setting has an invalid value."""


class PromptError(ConfigError):
    """A prompt file is missing, or uses a variable that its task does not have."""


class TextsError(ConfigError):
    """A fixed text is missing."""

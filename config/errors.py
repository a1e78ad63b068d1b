"""Errors of the configuration.

ConfigError
├── SettingsError   a setting has a value it cannot have
├── PromptError     a prompt file is missing, or asks for what its task does not have
└── TextsError      a fixed text is missing
"""


class ConfigError(Exception):
    """Something about the configuration is wrong."""


class SettingsError(ConfigError):
    """A setting has a value it cannot have."""


class PromptError(ConfigError):
    """A prompt file is missing, or asks for what its task does not have."""


class TextsError(ConfigError):
    """A fixed text is missing."""

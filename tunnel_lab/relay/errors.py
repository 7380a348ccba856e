"""The one error type that a user of the relay is meant to read."""


class RelayError(Exception):
    """The relay cannot start or go on; the text is one line: what failed, where, and what to do."""

"""Which protocols leave a part open, so that a scenario may name any server rule, exchange or objective there."""

from __future__ import annotations

from fedsim import registry
from fedsim.settings import OneOf, Settings

__all__ = ["open_kind", "protocol_that_takes"]


def open_kind(settings: type[Settings], key: str) -> str | None:
    """The kind of which anything may stand under this *key*; None: there is no such key, or it is for one class."""
    field = settings.model_fields.get(key)
    return next((item.kind for item in field.metadata if isinstance(item, OneOf)), None) if field else None


def protocol_that_takes(key: str, name: str) -> str | None:
    """The first registered protocol that may have ``key: {name: NAME}``; None: there is none.

    >>> protocol_that_takes("server", "adam"), protocol_that_takes("cohort", "random"), protocol_that_takes("codec", "")
    ('fedavg', 'composed', None)
    """
    for protocol in registry.names("protocols"):
        kind = open_kind(registry.load("protocols", protocol), key)
        if kind and name in registry.all_names(kind):
            return protocol
    return None

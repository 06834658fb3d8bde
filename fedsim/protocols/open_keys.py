"""Which protocols leave a part open, so that a scenario may name any server rule, exchange or objective there."""

from __future__ import annotations

from fedsim import registry
from fedsim.settings import OneOf, Settings

__all__ = ["is_open", "protocol_with_open"]


def is_open(settings: type[Settings], key: str) -> bool:
    """Whether *settings* have this *key*, and whatever is registered for it may stand there."""
    field = settings.model_fields.get(key)
    return field is not None and any(isinstance(item, OneOf) for item in field.metadata)


def protocol_with_open(key: str) -> str | None:
    """The name of the first registered protocol that leaves *key* open; None: there is none.

    >>> protocol_with_open("server"), protocol_with_open("cohort"), protocol_with_open("label")
    ('fedavg', 'composed', None)
    """
    return next((name for name in registry.names("protocols") if is_open(registry.load("protocols", name), key)), None)

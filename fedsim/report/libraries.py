"""The libraries that reports need and nothing else does."""

from __future__ import annotations

from importlib.util import find_spec

from fedsim.errors import UserError

__all__ = ["need_libraries"]

_NEEDED = {"altair": "altair>=6", "vl_convert": "vl-convert-python>=1.9", "jinja2": "jinja2>=3.1"}
"""By the name that Python imports: what pip is given."""


def need_libraries() -> None:
    """Raise `UserError` when one of them is not installed."""
    missing = [wanted for module, wanted in _NEEDED.items() if find_spec(module) is None]
    if missing:
        words = " ".join(f"'{wanted}'" for wanted in missing)
        raise UserError(f"a report needs libraries that are not installed; install them: pip install {words}")

"""The libraries that reports need and nothing else does: those of Python, and those that a page draws with."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

from fedsim.errors import UserError

__all__ = ["chart_libraries", "need_libraries"]

_NEEDED = {"altair": "altair>=6", "vl_convert": "vl-convert-python>=1.9", "jinja2": "jinja2>=3.1"}
"""By the name that Python imports: what pip is given."""


def need_libraries() -> None:
    """Raise `UserError` when one of them is not installed."""
    missing = [wanted for module, wanted in _NEEDED.items() if find_spec(module) is None]
    if missing:
        words = " ".join(f"'{wanted}'" for wanted in missing)
        raise UserError(f"a report needs libraries that are not installed; install them: pip install {words}")


@cache
def chart_libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed, with Vega's interpreter, as one script: the same for one version of vl-convert.

    It can stand inside a page. Raises `UserError` for a version of which that is not so.
    """
    import vl_convert

    script: str = vl_convert.javascript_bundle().strip()  # type: ignore[call-arg]  # its stub has no defaults
    if "</script" in script.lower() or "<!--" in script or "\r" in script:
        problem = f"the libraries of vl-convert-python {version('vl-convert-python')} cannot stand inside a page"
        raise UserError(f"{problem}; install another version of it")
    return script

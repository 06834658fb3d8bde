"""Where a scenario was written, for what turns out to be wrong only when its parts are put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fedsim.errors import UserError
from fedsim.scenario.document import Document, KeyPath, dotted
from fedsim.scenario.scalars import message_line
from fedsim.scenario.wording import blamed

__all__ = ["Written"]


class _Refusal(UserError):
    """Says already which key it is about."""


class Written:
    """The document that a scenario was read from, if there was one.

    It is no part of what the scenario is: all are equal, and a copy for another process goes without.
    """

    def __init__(self, document: Document | None = None, titles: Iterable[str] = ()) -> None:
        self._document = document
        self._positions = {title: position for position, title in enumerate(titles)}
        """Of protocols in the document: only some of them may be run, and others may have been added since."""

    @contextmanager
    def about(self, path: KeyPath) -> Iterator[None]:
        """What is found wrong inside this block is wrong with the key at *path*: the message names it and its place."""
        try:
            yield
        except _Refusal:
            raise
        except UserError as error:
            said = blamed(error, path)
            raise self.refusal(said.text, said.path) from error

    def refusal(self, problem: str, path: KeyPath) -> UserError:
        """The error that says *problem* of the key at *path*, and where that key was written."""
        place = f"{self._document.where(path)}: " if self._document else ""
        key = f"{dotted(path)}: " if path else ""
        return _Refusal(message_line(f"{place}{key}{problem}"))

    def path_of(self, title: str, protocols: Iterable[str]) -> KeyPath:
        """The path of the one of *protocols* that results call *title*: in the document, if that has it."""
        positions = self._positions or {other: position for position, other in enumerate(protocols)}
        return ("protocols", positions[title]) if title in positions else ("protocols",)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Written)

    def __hash__(self) -> int:
        return hash(Written)

    def __reduce__(self) -> tuple[type[Written], tuple[()]]:
        return Written, ()

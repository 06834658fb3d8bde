"""What stands in for a notebook: the output of a cell, and the shell of a kernel."""

from __future__ import annotations


class Screen:
    """The output of a notebook's cell: how often it was sent, and what stands there."""

    sent = 0
    content: dict[str, str]

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Screen:
        assert raw and display_id and self.sent == 0, "one output, which is updated"
        self.update(content, raw=raw)
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.sent, self.content = self.sent + 1, content


class ZMQInteractiveShell:
    """A kernel's shell, by its name."""

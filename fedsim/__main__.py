"""The command ``fedsim``, also as ``python -m fedsim``: interrupted at any moment, it ends without a traceback.

So the command's modules are imported inside what catches the interrupt, and this one imports next to nothing.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Execute the command that the process was started with, and return its exit status."""
    try:
        from fedsim.cli import main as execute

        return execute()
    except KeyboardInterrupt:  # while modules are imported: later ones end in there
        try:  # noqa: SIM105  # contextlib is one more import before interrupts are caught
            os.write(2, b"fedsim: interrupted\n")
        except OSError:  # nobody reads it
            pass
        return 130


if __name__ == "__main__":
    sys.exit(main())

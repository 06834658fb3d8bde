"""The command ``fedsim``, also as ``python -m fedsim``: interrupted at any moment, it ends without a traceback.

So the command's modules are imported inside what catches the interrupt, and this one imports next to nothing.
"""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["main"]


def main() -> int:
    """Execute the command that the process was started with, and return its exit status."""
    try:
        from fedsim.experiment.gc_policy import rare_collections

        with rare_collections():  # libraries are hundreds of thousands of objects, none of which is garbage
            from fedsim.cli import main as execute

            status = execute()
        gc.freeze()  # nor is it looked for again and again while Python ends, which may take most of a second
        return status
    except KeyboardInterrupt:  # while modules are imported: later ones end in there
        os.write(2, b"fedsim: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())

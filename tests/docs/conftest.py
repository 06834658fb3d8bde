"""Makes docs/generate.py and docs/writers modules that the tests of pages can import."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs"))

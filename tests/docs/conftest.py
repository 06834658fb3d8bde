"""Makes docs/generate.py, docs/writers and docs/site modules that the tests of pages can import."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path += [str(DOCS), str(DOCS / "site")]

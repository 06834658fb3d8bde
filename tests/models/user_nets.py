"""Files with a user's own torch module."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from fedsim.models.user_module import TorchModule

SHAPE, CLASSES = (1, 8, 8), 10

NET = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=4, dropout=0.0):
            super().__init__()
            self.conv = nn.Conv2d(1, width, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(width)
            self.drop = nn.Dropout(dropout)
            self.head = nn.Linear(width * 64, 10)

        def forward(self, x):
            return self.head(self.drop(torch.relu(self.norm(self.conv(x)))).flatten(1))
"""

HEAD = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)
            {made}

        def forward(self, x):
            {called}
            return {scores}
"""


def module(folder: Path, text: str = NET, **keys: Any) -> TorchModule:
    """A scenario's model section about the file ``net.py`` with *text*."""
    file = folder / "net.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return TorchModule(path=f"{file}:{keys.pop('of', 'Net')}", **keys)

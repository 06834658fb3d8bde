"""A figure that shows itself in a notebook."""

from __future__ import annotations

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["ShownFigure"]


class ShownFigure(Figure):
    """As the last line of a notebook's cell it is a picture, also where nobody has imported pyplot."""

    def _repr_png_(self) -> bytes:
        FigureCanvasAgg(self)
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()

"""A model that somebody has written in PyTorch, known by its sizes like every other: they are measured.

It is made and called on two samples of zeros, once for each content of its file, its options and the shape of samples;
that is when torch is loaded. Counted are the FLOPs of products (matrices, convolutions, attention), 2 per
multiply-accumulate, as for the models that come with fedsim. Left out: comparison with other models layer by layer, and
other starts than the module's own.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal, Self

from annotated_types import MinLen
from pydantic import Field, JsonValue, model_validator

from fedsim.errors import Misfit, UserError
from fedsim.files import read_text_file
from fedsim.imports import ImportPath
from fedsim.models.layers import Shape
from fedsim.models.settings import ModelSettings
from fedsim.models.user_table import Recipe, UserTable
from fedsim.settings import Count, Name, Several

__all__ = ["TorchModule"]


class TorchModule(ModelSettings):
    """Your own PyTorch module, from a Python file beside the scenario or an installed package."""

    name: Literal["torch_module"] = "torch_module"
    path: ImportPath
    """The module's class, or a function that returns one: `my_net.py:make_net`, relative to the scenario, or
    `package.module:Net`. It is run as it is, with all rights: use only code that you trust."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What it is called with, by keyword: numbers, text, true or false, null, lists and mappings of these."""
    classifier: Annotated[Several[Name], MinLen(1)] | None = None
    """Modules or parameters that are the classifier, by their names in the module, such as `head` or `layers.4`; the
    rest is the extractor. Left out, the last of the module's own children that has parameters."""
    tokens: Count | None = None
    """For modules that read tokens: these are int64 from 0 to below this number; left out, samples are float32."""
    sha256: str | None = None
    """Digest of the file; left out, it is filled in (not for packages), so that a run is never repeated with another
    file unnoticed."""

    @model_validator(mode="after")
    def _know_the_file(self) -> Self:
        if self.sha256 is None and self._file is not None:
            object.__setattr__(self, "sha256", _digest(self._file))
        return self

    @property
    def _file(self) -> Path | None:
        where = self.path.rpartition(":")[0]
        return Path(where) if where.endswith(".py") else None

    @property
    def vocabulary(self) -> int | None:  # type: ignore[override]
        """*tokens*."""
        return self.tokens

    def table(self, sample_shape: Shape | None, classes: int | None) -> UserTable:
        """The module as measured on the data set's samples; torch is loaded.

        Raises `UserError` when the data set declares sizes only, when the user's code fails (with its file and line),
        and when what it makes cannot be trained, sent or averaged.
        """
        if sample_shape is None or classes is None:
            raise UserError(
                "model 'torch_module' is measured on a sample, but this data set declares sizes only; choose a data "
                "set with samples, or the model declared"
            )
        if self._file is not None and self.sha256 is not None:
            self._check_digest(_digest(self._file))  # before it is run
        from fedsim.models.user_measurement import measured

        table = measured(
            Recipe(
                path=self.path,
                options=json.dumps(self.options, sort_keys=True),
                classifier=self.classifier,
                input_shape=tuple(sample_shape),
                outputs=classes,
                tokens=self.tokens,
            )
        )
        self._check_digest(table.source_sha256)
        return table

    def _check_digest(self, sha256: str) -> None:
        if self.sha256 is not None and self.sha256.lower() != sha256:
            raise Misfit(
                f"{self.path.rpartition(':')[0]} is another file than this scenario was made with: its digest is "
                f"{sha256}; bring the old one back, or leave sha256 out to use this one",
                "sha256",
            )


def _digest(file: Path) -> str:
    """As `fedsim.imports.load_function` tells it; the file is not run."""
    try:
        return hashlib.sha256(read_text_file(file, what="a Python file").encode()).hexdigest()
    except UserError as error:
        raise Misfit(str(error), "path") from error

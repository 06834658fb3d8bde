"""What every registered model can be asked: its table, for the samples and classes of a data set."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

from annotated_types import Interval

from fedsim.errors import UserError
from fedsim.models.layers import Shape
from fedsim.models.table import Initialisation, ModelTable
from fedsim.settings import Component

__all__ = ["LayerModelSettings", "ModelSettings", "Width"]

Width = Annotated[int, Interval(ge=1, le=10_000)]
"""Units, channels or classes of one layer: between two full layers of the most are 1e8 weights, 400 MB."""


class ModelSettings(Component):
    """A model, as a scenario names it."""

    @abstractmethod
    def table(self, sample_shape: Shape | None, classes: int | None) -> ModelTable:
        """The model's table for samples of *sample_shape* (channels first) and *classes* classes.

        None stands for a data set that declares sizes only. Raises `UserError` when the data set does not fit.
        """


class LayerModelSettings(ModelSettings):
    """A model made of layers."""

    initialisation: Initialisation = "xavier_uniform"
    """How weights start: xavier_uniform (Glorot's, zero biases, as in the papers) or torch_default (PyTorch's own).
    Never compare runs across the two."""

    def known_data(self, sample_shape: Shape | None, classes: int | None) -> tuple[Shape, int]:
        """The data set's sample shape and classes, for a model that is cut to fit them.

        Raises `UserError` when the data set declares sizes only.
        """
        if sample_shape is None or classes is None:
            raise UserError(
                f"model {self.name!r} takes its shape from the data set, but this one declares sizes only; choose a "
                "data set with samples, or a model of its own shape (hfedms_cnn, fedgs_cnn, declared)"
            )
        return sample_shape, classes

    def check_data(self, sample_shape: Shape | None, classes: int | None, *, needed: Shape, outputs: int) -> None:
        """Raise `UserError` unless the data set, as far as it is known, fits a model that takes *needed* samples.

        Fewer classes than *outputs* are allowed.
        """
        if sample_shape is not None and sample_shape != needed:
            way_out = f"set data.pixels to {needed[-1]}, or choose another data set or model"
            raise UserError(
                f"model {self.name!r} needs samples of shape {needed}, the data set has {sample_shape}; {way_out}"
            )
        if classes is not None and classes > outputs:
            raise UserError(
                f"model {self.name!r} has {outputs} outputs, the data set has {classes} classes; "
                f"set model.classes to {classes}"
            )

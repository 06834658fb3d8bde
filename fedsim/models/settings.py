"""What every registered model can be asked: its table, for the samples and classes of a data set."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

from annotated_types import Interval

from fedsim.errors import UserError
from fedsim.models.layers import Shape
from fedsim.models.table import Initialisation, ModelTable
from fedsim.settings import Component

__all__ = ["LayerModelSettings", "ModelSettings", "PublishedModelSettings", "Width", "channel_axis"]

Width = Annotated[int, Interval(ge=1, le=10_000)]
"""Units, channels or classes of one layer: between two full layers of the most are 1e8 weights, 400 MB."""


MOST_CHANNELS = 4
"""Of an image whose last axis is taken for its channels: grey, or colours with opacity."""


class ModelSettings(Component):
    """A model, as a scenario names it."""

    vocabulary: ClassVar[int | None] = None
    """For models that read tokens: these are whole numbers from 0 to below it. None for those that read values."""

    @abstractmethod
    def table(self, sample_shape: Shape | None, classes: int | None) -> ModelTable:
        """The model's table for samples of *sample_shape* (channels first) and *classes* classes.

        None stands for a data set that declares sizes only. Raises `UserError` when the data set does not fit.
        """


class LayerModelSettings(ModelSettings):
    """A model made of layers."""

    initialisation: Initialisation = "xavier_uniform"
    """How weights start: xavier_uniform (Glorot's) and kaiming_normal (He's), both with zero biases, or torch_default
    (PyTorch's own). Each model starts as its paper says; never compare runs that start differently."""

    def known_data(self, sample_shape: Shape | None, classes: int | None) -> tuple[Shape, int]:
        """The data set's sample shape and classes, for a model that is cut to fit them.

        Raises `UserError` when the data set declares sizes only.
        """
        if sample_shape is None or classes is None:
            raise UserError(
                f"model {self.name!r} takes its shape from the data set, but this one declares sizes only; choose a "
                "data set with samples, or a model of its own shape (such as hfedms_cnn, vgg, or declared)"
            )
        return sample_shape, classes

    def check_data(self, sample_shape: Shape | None, classes: int | None, *, needed: Shape, outputs: int) -> None:
        """Raise `UserError` unless the data set, as far as it is known, fits a model that takes *needed* samples.

        Fewer classes than *outputs* are allowed.
        """
        if sample_shape is not None and sample_shape != needed:
            raise UserError(
                f"model {self.name!r} needs samples of shape {needed}, the data set has {sample_shape}; "
                f"{_way_out(sample_shape, needed)}"
            )
        self.check_outputs(classes, outputs=outputs)

    def check_outputs(self, classes: int | None, *, outputs: int) -> None:
        """Raise `UserError` when the data set has more classes than the model has outputs, or asks for one number only.

        That is what regression does; a model of several outputs would leave open which of them is meant.
        """
        if classes == 1 and outputs != 1:
            raise UserError(
                f"model {self.name!r} has {outputs} outputs, the data set asks for one number; set model.classes to 1"
            )
        if classes is not None and classes > outputs:
            raise UserError(
                f"model {self.name!r} has {outputs} outputs, the data set has {classes} classes; "
                f"set model.classes to {classes}"
            )


def channel_axis(shape: Shape, axes: int) -> str:
    """The first way out for samples of *shape*, where their channels are missing or last; else nothing.

    The model takes samples of so many *axes*, channels first.

    >>> channel_axis((28, 28), 3), channel_axis((3, 32, 32), 3)
    ('save x[:, None], as the channel axis is missing; or ', '')
    """
    if len(shape) == axes - 1:
        return "save x[:, None], as the channel axis is missing; or "
    if len(shape) == axes and shape[-1] < min(MOST_CHANNELS + 1, *shape[:-1]):
        return "save np.moveaxis(x, -1, 1), as channels come first; or "
    return ""


def _way_out(shape: Shape, needed: Shape) -> str:
    """What may help somebody whose samples have *shape* and whose model takes *needed* images."""
    axis = channel_axis(shape, len(needed)) if needed in ((1, *shape), (*shape[-1:], *shape[:-1])) else ""
    if axis or len(shape) != 3:
        return f"{axis}choose softmax or mlp, which take any shape, or another data set or model"
    if shape[0] == needed[0] and shape[1] == shape[2]:
        return f"set data.pixels to {needed[-1]}, or choose another data set or model"
    own = f"set data.pixels to {needed[-1]} and data.grey to true"
    return f"choose small_cnn or resnet, which take images of many sizes; with images of your own, {own}"


class PublishedModelSettings(LayerModelSettings):
    """A model with the samples and classes of its paper, which is cut to fit others."""

    PAPER_SHAPE: ClassVar[Shape]
    PAPER_CLASSES: ClassVar[int]

    classes: Width | None = None
    """Outputs of the classifier; left out, as many as the data set has classes (as many as in the paper when the data
    set declares sizes only)."""

    def published_data(self, sample_shape: Shape | None, classes: int | None) -> tuple[Shape, int]:
        """The shape of a sample and the number of outputs: the data set's, or the paper's where it tells nothing.

        Raises `UserError` when the data set has more classes than the model is told to have outputs.
        """
        outputs = self.classes or classes or self.PAPER_CLASSES
        self.check_outputs(classes, outputs=outputs)
        return sample_shape or self.PAPER_SHAPE, outputs

"""A model of which only the sizes are known: enough for the network and the devices, nothing to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Interval
from pydantic import model_validator

from fedsim.errors import Misfit, UserError
from fedsim.models.layers import Shape
from fedsim.models.settings import ModelSettings
from fedsim.models.table import BYTES_PER_PARAMETER, CLASSIFIER, EXTRACTOR, FORWARDS_PER_TRAINING_STEP, ModelTable
from fedsim.settings import Positive

__all__ = ["Declared", "DeclaredTable"]

ParameterCount = Annotated[float, Interval(ge=1, le=1e15)]
"""A thousand times the parameters of the largest models; with their bytes, still a number of packets of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class DeclaredTable(ModelTable):
    """Sizes as somebody states them; they may be rounded, as papers print them."""

    trainable: ClassVar[bool] = False

    total: float
    """Parameters of the whole model."""
    classifier: float | None = None
    """Parameters of the classifier; None when the model is not split."""
    training_flops: float | None = None
    """FLOPs to train on one sample; None when they are not known."""
    bytes_per_parameter: float = BYTES_PER_PARAMETER

    @property
    def parts(self) -> tuple[str, ...]:
        """``("extractor", "classifier")``, or ``("model",)`` when the classifier's size is not declared."""
        return ("model",) if self.classifier is None else (EXTRACTOR, CLASSIFIER)

    @property
    def text(self) -> str:
        """Canonical text of all declared numbers."""
        facts = {
            "parameters": self.total,
            "classifier_parameters": self.classifier,
            "training_flops_per_sample": self.training_flops,
            "bytes_per_parameter": self.bytes_per_parameter,
        }
        return "; ".join(f"{key}: {None if value is None else float(value)}" for key, value in facts.items())

    @property
    def training_flops_per_sample(self) -> float:
        """The declared FLOPs to train on one sample; raises `UserError` when they are not declared."""
        if self.training_flops is None:
            raise UserError(
                "compute time from FLOPs needs the model's FLOPs, but model 'declared' does not state them; set "
                "model.training_flops_per_sample, or give the devices' compute time in seconds per sample"
            )
        return self.training_flops

    @property
    def forward_flops_per_sample(self) -> float:
        """A third of the training FLOPs; raises `UserError` when they are not declared."""
        return self.training_flops_per_sample / FORWARDS_PER_TRAINING_STEP

    def part_flops(self, part: str) -> float:
        """Raises `UserError`: no parts' FLOPs are declared."""
        raise UserError(
            "compute time of a part needs its FLOPs, and model 'declared' states none for its parts; choose a model "
            "with layers, or devices whose compute time is 0"
        )

    def feature_shape(self) -> None:
        """Nobody has said."""
        return

    def parameters(self, part: str | None = None) -> float:
        """The declared number for *part*, or for the whole model; raises `UserError` when there is no such part."""
        if part is not None:
            self.checked_part(part)
        if part == CLASSIFIER and self.classifier is not None:
            return self.classifier
        if part == EXTRACTOR and self.classifier is not None:
            return self.total - self.classifier
        return self.total

    def bytes(self, part: str | None = None) -> float:
        """The bytes of *part* (or of the whole model) on the wire, without headers."""
        return self.bytes_per_parameter * self.parameters(part)


class Declared(ModelSettings):
    """A model of declared size that is sent and timed but never trained, for studies of the network alone."""

    name: Literal["declared"] = "declared"
    parameters: ParameterCount
    """Parameters of the whole model; rounded figures such as 6.68e6 are welcome."""
    classifier_parameters: ParameterCount | None = None
    """Parameters of the classifier alone; left out, the model has one part and cannot be sent in parts."""
    training_flops_per_sample: Positive | None = None
    """FLOPs of one sample in one training step (3 forward passes); needed only when compute time comes from FLOPs."""
    bytes_per_parameter: Annotated[float, Interval(ge=1e-3, le=1e3)] = float(BYTES_PER_PARAMETER)
    """Bytes of one parameter on the wire: 4 for float32."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for key, value in (("parameters", self.parameters), ("classifier_parameters", self.classifier_parameters)):
            if value is not None and not value.is_integer():
                raise Misfit(f"{key}={value} must be a whole number; {value:g} million are {value:g}e+6", key)
        return self

    @model_validator(mode="after")
    def _classifier_is_a_part(self) -> Self:
        if self.classifier_parameters is not None and self.classifier_parameters >= self.parameters:
            raise ValueError(
                f"classifier_parameters={self.classifier_parameters:g} must be less than "
                f"parameters={self.parameters:g}; leave it out for a model that is not split"
            )
        return self

    def table(self, sample_shape: Shape | None, classes: int | None) -> DeclaredTable:
        """The declared sizes; any data set fits.

        >>> table = Declared(parameters=6.68e6, classifier_parameters=6.3e3).table(None, None)
        >>> table.bytes(), table.bytes("classifier"), table.parameters("extractor")
        (26720000.0, 25200.0, 6673700.0)
        """
        return DeclaredTable(
            total=self.parameters,
            classifier=self.classifier_parameters,
            training_flops=self.training_flops_per_sample,
            bytes_per_parameter=self.bytes_per_parameter,
        )

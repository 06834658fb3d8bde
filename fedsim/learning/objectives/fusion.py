"""FedFusion's local training (Yao, Huang, Wu, Zhang and Sun, *Towards faster and better federated learning: A feature
fusion approach*, ICIP 2019): local features are fused with those of the round's global model, which is frozen."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.errors import Misfit
from fedsim.learning.objectives.objective import Objective
from fedsim.models.fusion import fused, share_before_fusion
from fedsim.models.layers import Operator
from fedsim.models.table import LayerTable, ModelTable

__all__ = ["FeatureFusion"]


class FeatureFusion(Objective):
    """The loss on samples, of a model with a fusion layer; the layer takes the global model's features, too."""

    name: Literal["fusion"] = "fusion"
    receives: ClassVar[tuple[str, ...]] = ("global",)
    fuses: ClassVar[str | None] = "global"
    operator: Operator
    """conv: a 1x1 convolution of both features; multi: a gate for each channel; single: one gate for all."""

    def forward_passes(self, table: ModelTable) -> float:
        """The global model's layers up to the fusion."""
        return share_before_fusion(table)

    def adapted(self, table: ModelTable) -> ModelTable:
        """With the fusion layer. The model must be one of layers, with an extractor."""
        if not isinstance(table, LayerTable):
            what = "a PyTorch module of one's own" if table.trainable else "a model of declared sizes"
            raise Misfit(f"no fusion layer can be put into {what}; choose a model of layers, such as small_cnn or mlp")
        if not table.extractor:
            raise Misfit("the model has no features to fuse, as it is one layer; choose another, such as mlp")
        return fused(table, self.operator)

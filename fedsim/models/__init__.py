"""Models as tables of layers: what a network sends, computes and trains, known without any tensor."""

from __future__ import annotations

__all__ = ["REGISTRY"]

REGISTRY: dict[str, str] = {
    "softmax": "fedsim.models.softmax:Softmax",
    "mlp": "fedsim.models.mlp:Mlp",
    "small_cnn": "fedsim.models.small_cnn:SmallCnn",
    "hfedms_cnn": "fedsim.models.hfedms_cnn:HfedmsCnn",
    "fedgs_cnn": "fedsim.models.fedgs_cnn:FedgsCnn",
    "leaf_cnn": "fedsim.models.leaf_cnn:LeafCnn",
    "vgg": "fedsim.models.vgg:Vgg",
    "resnet": "fedsim.models.resnet:ResNet",
    "char_cnn": "fedsim.models.char_cnn:CharCnn",
    "vdcnn": "fedsim.models.vdcnn:Vdcnn",
    "conv1d": "fedsim.models.conv1d:Conv1dModel",
    "gru": "fedsim.models.gru:GruModel",
    "lstm": "fedsim.models.lstm:LstmModel",
    "torch_module": "fedsim.models.user_module:TorchModule",
    "declared": "fedsim.models.declared:Declared",
}

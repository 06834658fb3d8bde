"""Codecs: how an update is written on the wire."""

REGISTRY = {
    "float32": "fedsim.learning.codecs.float32:Float32",
}

"""How much of a signal is lost on its way through the air. One file and one line per model."""

REGISTRY = {
    "free_space": "fedsim.radio.path_loss.free_space:FreeSpace",
    "log_distance": "fedsim.radio.path_loss.log_distance:LogDistance",
}

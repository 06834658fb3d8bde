"""Federated data sets: real samples, or only their numbers, spread over clients. One class and one line for each."""

REGISTRY = {
    "digits": "fedsim.data.digits:Digits",
    "bearings": "fedsim.data.bearings.dataset:Bearings",
    "glyphs": "fedsim.data.glyphs.dataset:Glyphs",
    "femnist": "fedsim.data.femnist:Femnist",
    "cifar10": "fedsim.data.cifar10:Cifar10",
    "cinic10": "fedsim.data.cifar10:Cinic10",
    "ag_news": "fedsim.data.ag_news:AgNews",
    "speech_commands": "fedsim.data.speech_commands:SpeechCommands",
    "spoken_digits": "fedsim.data.spoken_digits:SpokenDigits",
    "cmapss": "fedsim.data.cmapss:Cmapss",
    "cwru": "fedsim.data.cwru:Cwru",
    "arrays": "fedsim.data.arrays:Arrays",
    "images": "fedsim.data.images:ImageFolders",
    "csv": "fedsim.data.table:Table",
    "python": "fedsim.data.user_code:UserCode",
    "declared": "fedsim.data.declared:Declared",
}

"""Results for other tools: an exporter is a function of finished runs, a folder to fill, and the folder's later place.

Each library that fedsim does not need itself is imported by one module here, when its exporter is called.
"""

REGISTRY = {
    "tensorboard": "fedsim.experiment.exports.tensorboard_events:tensorboard",
    "mlflow": "fedsim.experiment.exports.mlflow_runs:mlflow",
    "parquet": "fedsim.experiment.exports.parquet_tables:parquet",
}

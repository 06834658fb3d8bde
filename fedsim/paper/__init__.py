"""Published tables beside our results. The published numbers are data: ``published.csv``."""

REGISTRY = {
    "hfedms_table4": "fedsim.paper.hfedms:table4",
    "fedgsp_cost": "fedsim.paper.fedgsp:cost",
}

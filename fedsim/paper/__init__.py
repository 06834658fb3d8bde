"""Published tables beside our results. The published numbers are data: ``published.csv``."""

REGISTRY = {
    "hfedms_table3": "fedsim.paper.hfedms:table3",
    "hfedms_table4": "fedsim.paper.hfedms:table4",
    "fedgsp_table1": "fedsim.paper.fedgsp:table1",
    "fedgsp_cost": "fedsim.paper.fedgsp:cost",
}

"""Published tables beside our results: functions of `Results`. The published numbers are data: ``published.csv``."""

REGISTRY = {
    "hfedms_table3": "fedsim.paper.published:hfedms_table3",
    "hfedms_table4": "fedsim.paper.published:hfedms_table4",
    "fedgsp_table1": "fedsim.paper.published:fedgsp_table1",
    "fedgsp_cost": "fedsim.paper.published:fedgsp_cost",
    "fedgs_table2": "fedsim.paper.published:fedgs_table2",
    "fedgs_fig5": "fedsim.paper.published:fedgs_fig5",
    "fedgs_fig5_5_factories": "fedsim.paper.published:fedgs_fig5_5_factories",
    "fedgs_fig5_20_factories": "fedsim.paper.published:fedgs_fig5_20_factories",
    "flexifed_table1": "fedsim.paper.flexifed:flexifed_table1",
    "spatl_table1": "fedsim.paper.spatl:spatl_table1",
    "spatl_table2": "fedsim.paper.spatl:spatl_table2",
}

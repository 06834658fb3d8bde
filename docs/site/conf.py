"""The settings of the site, which `make site` builds from the pages as they are: no text for readers stands here.

The source folder is the repository's root, so that a link between pages, notebooks and files means the same on the site
as in any viewer of the repository. Nothing is fetched while it is built, and no page loads anything from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

project = "fedsim"
html_title = "fedsim"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "docstrings",
    "file_pages",
    "sidebar",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "scenarios/README.md"),
    *("docs/**.md", "notebooks/*.ipynb"),
]
exclude_patterns = ["**/.*", ".*", "benchmarks", "build", "fedsim", "mutants", "runs", "tests"]
root_doc = "docs/README"

myst_heading_anchors = 4
nb_execution_mode = "off"  # the outputs are those that the notebooks have

smartquotes = False  # two dashes begin an option
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures, of other libraries and of what is described nowhere
default_role = "code_name"
autodoc_default_options = {"members": True, "exclude-members": "model_config, model_post_init"}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
toc_object_entries = False  # hundreds of names, which the search finds

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_additional_pages = {"index": "to_the_front_page.html"}
templates_path = ["templates"]

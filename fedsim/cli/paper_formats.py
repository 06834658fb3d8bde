"""Tables of text as Markdown or LaTeX, to be pasted into a page or a paper: hostile names stay names.

LaTeX tables need the package booktabs. pandas escapes names for LaTeX and lays the lines out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

__all__ = ["latex", "markdown_text"]

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~$#&!])")
_NUMBER = r"-?(?:inf|[\d,]*\.?\d+(?:e[+-]\d+)?)"
_CELL = re.compile(
    rf"(?P<median>median )?(?P<above>> )?(?P<mean>{_NUMBER})(?: ± (?P<width>{_NUMBER}))?(?P<of> \(.*\))?"
)


def markdown_text(text: str) -> str:
    r"""*text* as Markdown shows it unchanged, in a table too.

    >>> print(markdown_text("a|b `c` lte_m"))
    a\|b \`c\` lte\_m
    """
    return _MARKDOWN.sub(r"\\\1", text)


def latex(cells: pd.DataFrame, *, left: Sequence[str]) -> str:
    r"""*cells* as a ``tabular``: names as they are, numbers in mathematics.

    >>> print(latex(pd.DataFrame({"protocol": ["fed_avg"], "accuracy": ["0.91 ± 0.02"]}), left=["protocol"]))
    \begin{tabular}{lr}
    \toprule
    protocol & accuracy \\
    \midrule
    fed\_avg & $0.91 \pm 0.02$ \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    named = cells.columns.isin(left)
    names, numbers = cells.columns[named], cells.columns[~named]
    shown = cells.reset_index(drop=True)
    shown[numbers] = shown[numbers].map(_in_mathematics)
    styler = shown.style.hide(axis="index").format_index(escape="latex", axis="columns")
    styler = styler.format(escape="latex", subset=names).format(escape="latex-math", subset=numbers)
    columns = "".join("l" if title in left else "r" for title in cells)
    return str(styler.to_latex(hrules=True, column_format=columns))


def _in_mathematics(cell: str) -> str:
    r"""The numbers of a cell between dollars.

    >>> print(_in_mathematics("median 3.2 (2 of 3)"), _in_mathematics("> 1,500"), _in_mathematics("2e+41 ± 3e-05"))
    median $3.2$ (2 of 3) $> 1{,}500$ $2 \times 10^{41} \pm 3 \times 10^{-5}$
    """
    found = _CELL.fullmatch(cell)
    if found is None:
        return cell
    width = rf" \pm {_number(found['width'])}" if found["width"] else ""
    return f"{found['median'] or ''}${found['above'] or ''}{_number(found['mean'])}{width}${found['of'] or ''}"


def _number(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    power = rf" \times 10^{{{int(exponent)}}}" if exponent else ""
    return mantissa.replace(",", "{,}").replace("inf", r"\infty") + power

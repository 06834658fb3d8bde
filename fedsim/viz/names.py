"""Names that users chose, as figures show them: short enough, apart from each other, in letters that the font has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.font_manager import get_font as _font

__all__ = ["fitted", "legible", "names_apart", "on_two_lines", "shortened"]

_LONGEST = 30  # letters
_WORD = re.compile(r"(?:[^-_/. ]|(?<=\d)\.(?=\d))+[-_/. ]*|[-_/. ]+")
"""With the signs that end it. The dot of a number ends none: 0.1 and 0.5 stay what they are."""
_STEP = re.compile(rf"[^-_/. =]+=(?:\[[^]]*\]|{{[^}}]*}}|[^,[{{])*(?:, |$)|{_WORD.pattern}")
"""A word, or a key with all of its value: one is nothing without the other."""


def names_apart(names: Iterable[str]) -> list[str]:
    """*names* without the words that all of them begin with; none becomes empty.

    >>> names_apart(["plant_lte-m", "plant_nb-iot"]), names_apart(["lr-0.1", "lr-0.5"]), names_apart(["lte", "lte-m"])
    (['lte-m', 'nb-iot'], ['0.1', '0.5'], ['lte', 'lte-m'])
    >>> names_apart(["radio.profile=nb_iot_nb1, mu=0.1", "radio.profile=nb_iot_nb1, mu=1"])
    ['mu=0.1', 'mu=1']
    """
    words = [_STEP.findall(name) for name in names]
    shortest = min((len(parts) for parts in words), default=0)
    alike = 0
    while alike < shortest - 1 and len({parts[alike] for parts in words}) == 1:
        alike += 1
    return ["".join(parts[alike if len(words) > 1 else 0 :]) for parts in words]


def fitted(names: Iterable[str], letters: int) -> dict[str, str]:
    """Each of *names* on at most two lines of so many *letters*; those that would look the same are numbered.

    >>> fitted(["fedavg", "fedavg with a long title"], 14)
    {'fedavg': 'fedavg', 'fedavg with a long title': 'fedavg with a\\nlong title'}
    """
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = on_two_lines(shortened(legible(" ".join(name.split())), 2 * letters), letters)
        numbered = (f"{text} ({number})" for number in count(2))
        shown[name] = text if text not in shown.values() else next(one for one in numbered if one not in shown.values())
    return shown


def on_two_lines(text: str, letters: int) -> str:
    """Broken after the last word that fits; where no word fits, or the rest does not, after so many *letters*."""
    first = ""
    for word in _WORD.findall(text):
        if len((first + word).rstrip()) > letters:
            break
        first += word
    rest = text[len(first) :]
    if not first or len(rest) > letters:
        first, rest = text[:letters], text[letters:]
    return "\n".join(line for line in (first.rstrip(), rest) if line)


def legible(text: str) -> str:
    """*text* with a question mark for each letter that the font does not have.

    >>> legible("hall-\u00fc"), legible("\u8f66\u95f4-1")
    ('hall-ü', '??-1')
    """
    font = _font(findfont(FontProperties()))
    return "".join(letter if letter == "\n" or font.get_char_index(ord(letter)) else "?" for letter in text)


def shortened(name: str, longest: int = _LONGEST) -> str:
    """A name that is not too long: the middle is what it loses.

    >>> shortened("plant-north/hall-17/line-3/station-002"), shortened("hall-1")
    ('plant-north/ha…e-3/station-002', 'hall-1')
    """
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[half - longest + 1 :]}"

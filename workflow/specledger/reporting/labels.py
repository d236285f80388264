"""In what order drafters and parts of the time come, in every figure and legend."""

DRAFTERS = ("none", "draft", "draft_dynamic", "mtp", "ngram", "lookup")
PARTS = ("verify", "draft", "catch_up", "accept", "sync", "other")


def place_of(drafter: str) -> int:
    """Where a drafter stands; unknown ones come last."""
    return DRAFTERS.index(drafter) if drafter in DRAFTERS else len(DRAFTERS)

"""Names inside figures; they equal those of the texts, which a test compares."""

DRAFTERS = {"none": "plain decoding", "draft": "draft model", "mtp": "MTP module", "ngram": "n-gram"}
ENGINES = {
    "recompute": "recompute (window)", "cached": "cached (sliding)", "compiled": "compiled (sliding)",
}  # fmt: skip
PARTS = {
    "verify": "verifying", "draft": "drafting", "catch_up": "catching up", "accept": "accepting",
    "sync": "waiting", "other": "the rest",
}  # fmt: skip
MODELS = {"plain": "target without MTP", "mtp": "target with MTP", "module": "MTP module", "draft": "draft model"}

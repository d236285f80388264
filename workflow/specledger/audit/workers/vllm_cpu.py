"""vLLM on a CPU, through Python and through its OpenAI-compatible server.

The lower half runs in vLLM's environment, where specledger isn't installed.
"""

NAME = "vllm"
REQUIREMENTS = "vllm.txt"
UNWANTED = ("torchvision", "torchaudio", "torchcodec")  # builds for another torch, which break the import
ORDER = "vllm"  # of its warpers; see audit.warpers
MODEL = "folder"

NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1}
DRAFT = {"method": "draft_model", "num_speculative_tokens": 3}
MODES = {
    "plain": {"control": "null"},
    "ngram": {"options": {"speculative": NGRAM}, "prompt": "long", "draft": False},
    "draft": {"options": {"speculative": DRAFT}, "draft": False},
}


class System:
    pass


if __name__ == "__main__":
    from worker import serve

    serve(System)

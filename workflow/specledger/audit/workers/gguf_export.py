"""A model folder in Hugging Face's Llama layout as one GGUF file for llama.cpp: `python gguf_export.py FOLDER FILE`.

Runs in llama.cpp's environment (numpy, safetensors, gguf), where specledger isn't installed.
"""

import json
import os
import sys
from pathlib import Path

BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]  # those that GPT-2's byte alphabet shows as they are


def token_texts(count: int) -> list[str]:
    """A text for each of `count` tokens, none twice: llama.cpp has no tokenizer of single characters.

    Prompts go in as ids and texts come out as ids, so that these names only have to be different.
    """
    letters = [chr(code) for code in BYTES]
    pairs = [first + second for first in letters for second in letters]
    return (letters + pairs)[:count]


def turned(matrix, heads: int):
    """Rows of a query or key matrix in the order of llama.cpp's RoPE, which turns neighbours (i, i + 1).

    Hugging Face's turns (i, i + E/2); E is the width of a head.
    """
    rows, width = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)


def renamed(name: str) -> str:
    """Such as blk.0.attn_q.weight of model.layers.0.self_attn.q_proj.weight."""
    parts = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "lm_head": "output",
        "model.layers.": "blk.",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for theirs, ours in parts.items():
        name = name.replace(theirs, ours)
    return name


def export(folder: Path, path: Path) -> None:
    """Write the model, in float32, with one token more than it has: an end of text, which our models don't know.

    Without one llama.cpp takes a token of the vocabulary for it. The sampler must never draw it: `ignore_eos`.
    """
    import gguf
    import numpy as np
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "llama":
        raise ValueError(f"{folder / 'config.json'}: model_type must be llama, got {config['model_type']}")
    vocabulary, heads, kv_heads = (config[k] for k in ("vocab_size", "num_attention_heads", "num_key_value_heads"))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(vocabulary + 1)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*token_texts(vocabulary), "<|end|>"])
    writer.add_token_types([gguf.TokenType.NORMAL] * vocabulary + [gguf.TokenType.CONTROL])
    writer.add_token_merges([" ".join(token_texts(2))])  # it wants at least one, and never uses it
    writer.add_eos_token_id(vocabulary)
    writer.add_add_bos_token(False)
    for name, tensor in load_file(folder / "model.safetensors").items():
        tensor = tensor.astype(np.float32)
        if name.endswith("q_proj.weight"):
            tensor = turned(tensor, heads)
        elif name.endswith("k_proj.weight"):
            tensor = turned(tensor, kv_heads)
        elif name in ("model.embed_tokens.weight", "lm_head.weight"):
            tensor = np.concatenate([tensor, np.zeros((1, tensor.shape[1]), dtype=np.float32)])
        writer.add_tensor(renamed(name), np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    source, goal = map(Path, sys.argv[1:])
    unfinished = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    export(source, unfinished)
    unfinished.replace(goal)

"""A model as a folder: config.json and model.safetensors in Hugging Face's layout, heads beside them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json, write_json, written_whole
from specledger.models.llama import Llama, LlamaConfig

MTP_PREFIX = "mtp."


def hugging_face_config(config: LlamaConfig) -> dict:
    """config.json of a transformers `LlamaForCausalLM` with these sizes."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocabulary,
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "intermediate_size": config.hidden,
        "max_position_embeddings": config.context,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_eps,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }


def _config_from_hugging_face(record: dict) -> LlamaConfig:
    return LlamaConfig(
        vocabulary=record["vocab_size"],
        layers=record["num_hidden_layers"],
        width=record["hidden_size"],
        heads=record["num_attention_heads"],
        kv_heads=record["num_key_value_heads"],
        context=record["max_position_embeddings"],
        rope_theta=record["rope_theta"],
        norm_eps=record["rms_norm_eps"],
    )


def save_tensors(path: Path, tensors: dict) -> None:
    """Write tensors by name, whole or not at all."""
    found = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        with written_whole(path) as temporary:
            save_file(found, temporary, metadata={"format": "pt"})
    except SafetensorError as error:  # it names neither the file nor, in a field of its own, what the disk said
        raise UserError(f"{path}: could not be written ({error}); make room on the disk and run again") from None


def save_model(folder: Path, model: Llama, mtp: torch.nn.Module | None = None) -> None:
    """Write the model; heads.safetensors is there for every model, empty for one without heads."""
    save_tensors(folder / "model.safetensors", model.state_dict())
    heads = {} if mtp is None else {MTP_PREFIX + name: tensor for name, tensor in mtp.state_dict().items()}
    save_tensors(folder / "heads.safetensors", heads)
    write_json(folder / "config.json", hugging_face_config(model.config))


def load_tensors(path: Path) -> dict:
    """Tensors by name; UserError for a file that is missing or damaged, or that holds what is not a number."""
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise UserError(f"{path}: missing; run snakemake again, it makes what is missing") from None
    except SafetensorError as error:
        raise UserError(f"{path}: damaged ({error}); delete it and run snakemake again") from None
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise UserError(f"{path}: {name} holds NaN or infinity; delete the file and run snakemake again")
    return tensors


def under(prefix: str, tensors: dict) -> dict:
    """Those whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def fill(module: torch.nn.Module, tensors: dict, path: Path) -> None:
    """Take the tensors over; UserError where they are not those of such a module."""
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise UserError(f"{path}: not the weights of this model ({str(error).splitlines()[-1].strip()})") from None


def _load_config(path: Path) -> LlamaConfig:
    record = read_json(path)
    try:
        return _config_from_hugging_face(record)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not the sizes of a model ({error}); delete it and run snakemake again") from None


def load_model(folder: Path, device: torch.device) -> Llama:
    """The model of a folder, ready for inference on `device`."""
    model = Llama(_load_config(folder / "config.json"))
    fill(model, load_tensors(folder / "model.safetensors"), folder / "model.safetensors")
    return model.to(device).eval().requires_grad_(False)


def of_one_vocabulary(symbols: int, found: Mapping[Path, Any]) -> None:
    """UserError for the first file whose model was not made for a text of so many symbols."""
    for path, made in found.items():
        if made.vocabulary != symbols:
            raise UserError(
                f"{path}: is of a vocabulary of {made.vocabulary} symbols, and this study's is of {symbols}; "
                "delete it and run snakemake again"
            )

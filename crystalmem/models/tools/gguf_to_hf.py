"""A GGUF file as a plain Hugging Face folder: dense weights, tokenizer, chat template, all out of the file.

usage: gguf_to_hf.py FILE.gguf OUT [--tie]

--tie: the file carries the embedding matrix twice, differently quantised; the output copy, which is the finer
one, serves as both. Runs offline; imports nothing of ours.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def main() -> None:
    """Convert, and check what was written."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tie", action="store_true")
    options = parser.parse_args()
    convert(options.source.resolve(), options.out, tie=options.tie)


def convert(source: Path, out: Path, *, tie: bool) -> None:
    """Write the folder; an assertion fails where it would not hold what the file holds."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    where, name = str(source.parent), source.name
    tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
    # Packed blocks would stay packed, and could not be saved.
    dense = GgufConfig(gguf_file=name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        where, gguf_file=name, dtype=torch.bfloat16, quantization_config=dense
    )
    if not all(weights.is_floating_point() for weights in model.parameters()):
        raise SystemExit("some weights are still packed")
    if tie and not model.config.tie_word_embeddings:
        model.get_input_embeddings().weight = model.get_output_embeddings().weight
        model.config.tie_word_embeddings = True
        model.tie_weights()
    # The mark of the quantised origin would keep it from being saved as what it now is.
    model.hf_quantizer = None
    for mark in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, mark):
            delattr(model.config, mark)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    if not tokenizer.chat_template:
        raise SystemExit("the file has no chat template")


if __name__ == "__main__":
    main()

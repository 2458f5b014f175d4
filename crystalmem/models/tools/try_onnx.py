"""Loads a folder for onnxruntime-genai and lets it answer once: a build that cannot is not kept.

usage: try_onnx.py FOLDER
"""

from __future__ import annotations

import json
import sys

TOKENS = 8


def main(folder: str) -> None:
    """SystemExit where it does not load or says nothing."""
    import onnxruntime_genai as genai

    getattr(genai, "disable_telemetry_events", bool)()
    model = genai.Model(folder)
    tokenizer = genai.Tokenizer(model)
    asked = json.dumps([{"role": "user", "content": "What is the capital of France?"}])
    prompt = tokenizer.encode(tokenizer.apply_chat_template(asked, add_generation_prompt=True))
    params = genai.GeneratorParams(model)
    params.set_search_options(max_length=len(prompt) + TOKENS, do_sample=False)
    generator = genai.Generator(model, params)
    generator.append_tokens(prompt)
    tokens = []
    while not generator.is_done():
        generator.generate_next_token()
        tokens.append(generator.get_next_tokens()[0])
    text = tokenizer.decode(tokens).strip()
    if not text:
        raise SystemExit("the model says nothing")
    print(text)


if __name__ == "__main__":
    main(sys.argv[1])

"""A small real embedder: an ONNX graph of table look-ups and a word tokenizer, in a folder of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from edge_agent.embedder_spec import SPEC_FILE, EmbedderSpec, Pooling, encode_spec

BROKEN = "brokenword"
"""A word whose row is NaN."""
# Pairs that share a row: only a vector can tell that they mean the same.
SAME = {"automobile": "car", "feline": "cat", "physician": "doctor"}
WORDS = (
    *("car", "cat", "doctor", "red", "blue", "house", "river", "bread", "mug", "cabinet", "parked", "sleeps"),
    *("the", "a", "is", "in", "near", "by", "old", "new", "fast", "slow", "works", "baker", "sold", "bought"),
)


def row_of(word: str, width: int) -> NDArray[np.float32]:
    """The table's row of a word, the same on every machine."""
    seed = int.from_bytes(hashlib.sha256(SAME.get(word, word).encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(width).astype(np.float32)


def make_embedder(
    folder: Path, *, pooling: Pooling = Pooling.MEAN, width: int = 64, name: str = "tiny", **spec: object
) -> EmbedderSpec:
    """A folder as `load_embedder` takes it. MEAN: BERT's inputs; CLS: XLM-R's, without token_type_ids."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary(pooling)
    _tokenizer(vocabulary, pooling).save(str(folder / "tokenizer.json"))
    graph = _graph(_table(vocabulary, pooling, width), with_types=pooling is Pooling.MEAN)
    onnx.save(graph, str(folder / "model.onnx"))
    made = EmbedderSpec(
        id=name, width=width, pooling=pooling, weights_sha256=_sha256(folder / "model.onnx"), **spec
    )
    (folder / SPEC_FILE).write_bytes(encode_spec(made))
    return made


def _vocabulary(pooling: Pooling) -> dict[str, int]:
    special = (
        ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if pooling is Pooling.MEAN else ("<s>", "<pad>", "</s>", "<unk>")
    )
    return {word: number for number, word in enumerate((*special, *WORDS, *SAME, BROKEN))}


def _tokenizer(vocabulary: Mapping[str, int], pooling: Pooling) -> Tokenizer:
    first, last, unknown = (
        ("[CLS]", "[SEP]", "[UNK]") if pooling is Pooling.MEAN else ("<s>", "</s>", "<unk>")
    )
    tokenizer = Tokenizer(WordLevel(dict(vocabulary), unk_token=unknown))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
    )
    # As MiniLM's own file: the embedder must not take this padding over.
    tokenizer.enable_padding(length=128)
    return tokenizer


def _table(vocabulary: Mapping[str, int], pooling: Pooling, width: int) -> NDArray[np.float32]:
    table = np.stack([row_of(word, width) for word in vocabulary])
    # Special tokens and unknown words weigh little, so that a text is near its words; padding is far off.
    table[:4] *= 0.01
    table[vocabulary["[PAD]" if pooling is Pooling.MEAN else "<pad>"]] = 1e4
    table[vocabulary[BROKEN]] = np.nan
    return table


def _graph(table: NDArray[np.float32], *, with_types: bool) -> onnx.ModelProto:
    """hidden = table[ids] + types[type_ids]; for CLS each state holds the whole text, as if attended."""
    width = table.shape[1]
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if with_types else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names]
    constants = [numpy_helper.from_array(table, "table")]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked"])]
    if with_types:
        constants.append(numpy_helper.from_array(np.zeros((2, width), np.float32), "types"))
        nodes.append(helper.make_node("Gather", ["types", "token_type_ids"], ["typed"]))
        nodes.append(helper.make_node("Add", ["looked", "typed"], ["last_hidden_state"]))
    else:
        constants.append(numpy_helper.from_array(np.array([2], np.int64), "last"))
        constants.append(numpy_helper.from_array(np.array([1], np.int64), "middle"))
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["weight"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["weight", "last"], ["weights"]),
            helper.make_node("Mul", ["looked", "weights"], ["seen"]),
            helper.make_node("ReduceSum", ["seen", "middle"], ["whole"], keepdims=1),
            helper.make_node("Add", ["looked", "whole"], ["last_hidden_state"]),
        ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", width])
    graph = helper.make_graph(nodes, "tiny", inputs, [output], constants)
    # What the oldest runtime that we support reads.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

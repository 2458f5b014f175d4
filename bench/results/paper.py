"""The paper's figures, to be printed beside ours (Tables II to V, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

SEVEN = ("sf", "ttl", "locomo", "longmemeval", "alfworld", "webarena", "syndrift")
ENVIRONMENT_LABELS = {
    "sf": "SF",
    "ttl": "TTL",
    "locomo": "LoCoMo",
    "longmemeval": "LME",
    "alfworld": "ALF",
    "webarena": "Web",
    "syndrift": "Drift",
    "babyai": "BabyAI",
    "miniwob": "MiniWoB++",
    "zsre": "ZsRE",
}


@dataclass(frozen=True)
class TableTwoRow:
    """Restored C by environment (order of SEVEN), their average, H, D; None where the paper prints none."""

    label: str
    restored: tuple[float, ...]
    average: float
    hysteresis: float | None
    deficit: float | None


TABLE_II = {
    "keep_all": TableTwoRow("Keep-all", (66.8, 59.1, 58.3, 55.5, 68.9, 30.3, 72.5), 58.8, None, None),
    "lru": TableTwoRow("LRU", (45.9, 41.9, 43.0, 39.0, 48.0, 19.0, 46.6), 40.5, 0.209, 17.6),
    "expiry": TableTwoRow("Expiry", (49.3, 44.8, 43.3, 40.8, 51.5, 19.8, 51.2), 43.0, 0.178, 15.1),
    "random": TableTwoRow("Random drop", (46.2, 41.7, 40.4, 38.4, 48.4, 17.9, 47.4), 40.0, 0.216, 17.9),
    "mem0": TableTwoRow("Mem0", (52.0, 47.5, 46.0, 43.0, 53.7, 22.0, 55.2), 45.6, 0.145, 12.3),
    "memgpt": TableTwoRow("MemGPT", (52.8, 47.1, 46.4, 43.7, 54.8, 22.0, 55.4), 46.0, 0.144, 12.1),
    "mars": TableTwoRow("MaRS", (51.4, 46.5, 45.0, 42.2, 53.3, 21.1, 53.6), 44.7, 0.157, 13.3),
    "amem": TableTwoRow("A-MEM", (54.7, 48.5, 47.7, 44.8, 56.7, 22.9, 57.7), 47.6, 0.121, 10.5),
    "memoryos": TableTwoRow("MemoryOS", (56.0, 49.7, 48.9, 45.7, 58.0, 23.9, 59.2), 48.8, 0.109, 9.2),
    "human_inspired": TableTwoRow(
        "Human-Inspired", (54.6, 48.7, 48.0, 45.0, 57.1, 22.6, 58.1), 47.7, 0.122, 10.1
    ),
    "r3mem": TableTwoRow("R3Mem", (60.0, 53.5, 53.1, 49.6, 62.5, 26.3, 64.6), 52.8, 0.044, 5.2),
    "curator": TableTwoRow("CURATOR", (58.7, 52.3, 51.1, 48.4, 60.5, 25.4, 62.9), 51.3, 0.087, 6.6),
    "amac": TableTwoRow("A-MAC", (58.0, 51.6, 51.2, 47.7, 60.0, 25.1, 62.4), 50.8, 0.088, 7.2),
    "recmem": TableTwoRow("RecMem", (57.6, 51.3, 50.4, 47.6, 59.5, 24.9, 61.7), 50.4, 0.093, 7.6),
    "agemem": TableTwoRow("AgeMem", (56.8, 50.9, 50.2, 46.9, 58.9, 24.3, 60.7), 49.8, 0.102, 8.2),
    "crystalmem_lite": TableTwoRow(
        "CrystalMem-lite", (65.0, 56.7, 56.4, 52.7, 67.4, 29.0, 70.9), 56.9, 0.013, 1.1
    ),
    "crystalmem": TableTwoRow("CrystalMem", (65.1, 57.4, 56.6, 53.2, 68.6, 29.8, 71.3), 57.4, 0.013, 0.5),
}
OURS_LABELS = {
    "lru_packed": "LRU, packed text",
    "curator_packed": "CURATOR, packed text",
    "paper": "CrystalMem, paper ladder",
    "product": "CrystalMem, product ladder",
    "paper_archive": "CrystalMem, paper ladder, archive",
    "product_archive": "CrystalMem, product ladder, archive",
    "mem0_v3": "Mem0 v3",
    "ablate:hallucinating": "A model that invents facts",
    "ablate:exact": "A model that knows the original (oracle)",
    "ablate:no_packed": "No lossless rung",
    "ablate:last_resort": "Eviction as last resort, not priced",
    "ablate:paper_values": "Values as the paper writes them",
    "ablate:paper_utilities": "r as the paper has it, for every kind",
    "ablate:rung_by_rung": "One rung at a time, not hulls",
    "ablate:extractive": "With extractive drafts (stand-in)",
}

# b*: the smallest budget at which CrystalMem matches CURATOR at full provision.
TABLE_III = {
    "sf": 50.0,
    "ttl": 40.0,
    "locomo": 50.0,
    "longmemeval": 50.0,
    "alfworld": 50.0,
    "webarena": 50.0,
    "syndrift": 50.0,
}

# Average, H, D.
TABLE_IV = {
    "crystalmem": ("CrystalMem (full)", 57.3, 0.015, 0.7),
    "ablate:size_greedy": ("Schedule → size-greedy", 55.6, 0.015, 2.2),
    "ablate:random_schedule": ("Schedule → random", 54.3, 0.033, 3.7),
    "ablate:recency_influence": ("Influence → recency", 56.0, 0.012, 1.9),
    "ablate:random_influence": ("Influence → random", 53.7, 0.035, 4.3),
    "ablate:no_coupling": ("w/o dependency coupling", 56.9, 0.011, 1.0),
    "ablate:no_gate": ("w/o verification gate", 54.6, 0.025, 3.3),
    "ablate:rho_0": ("Recryst. cap 0 %", 51.4, 0.071, 6.5),
    "ablate:rho_5": ("Recryst. cap 5 %", 55.9, 0.010, 2.1),
    "ablate:rho_20": ("Recryst. cap 20 %", 57.1, 0.013, 0.9),
    "ablate:k2": ("Ladder K=2", 54.3, 0.024, 3.5),
    "ablate:k3": ("Ladder K=3", 56.6, 0.011, 1.5),
    "ablate:k6": ("Ladder K=6", 57.2, 0.015, 0.7),
}

# D and H on the held-out environment.
BABYAI = {"crystalmem": (1.5, 0.011), "curator": (5.5, 0.069), "lru": (17.2, 0.199)}
GATE_REJECTED = {"compressed": 6.9, "skeletal": 16.4, "trace": 27.5}
INFLUENCE = {"spearman": (0.75, 0.76), "top_decile": (0.75, 0.80)}


def label(policy: str) -> str:
    """A policy's name in tables."""
    if policy in TABLE_II:
        return TABLE_II[policy].label
    if policy in TABLE_IV:
        return TABLE_IV[policy][0]
    return OURS_LABELS.get(policy, policy)

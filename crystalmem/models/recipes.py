"""What a model recipe is, and the recipes there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from crystalmem.models.minilm import MiniLm
from crystalmem.models.smollm2 import language_models
from shared.errors import Code, InputError

Say = Callable[[str], None]


class Recipe(Protocol):
    """Prepares one model in a folder of its own."""

    @property
    def name(self) -> str:
        """Name of the folder below the models directory, and on the command line."""

    @property
    def summary(self) -> str:
        """One line: what it is for, bytes on disk, licence, where the bytes come from."""

    def is_ready(self, folder: Path) -> bool:
        """Whether the folder holds what `prepare` makes; quick, hashes nothing."""

    def prepare(self, folder: Path, say: Say) -> None:
        """Make the folder; resumable. Raises CrystalError with the next thing to do."""


def recipes() -> Mapping[str, Recipe]:
    """By name, in the order in which they are listed."""
    known: tuple[Recipe, ...] = (MiniLm(), *language_models())
    return {recipe.name: recipe for recipe in known}


def recipe(name: str) -> Recipe:
    """The recipe of this name; InputError names the known ones."""
    known = recipes()
    if name not in known:
        raise InputError(
            Code.NOT_FOUND, "no such model", value=name[:80], known=sorted(known), hint="See `models list`"
        )
    return known[name]

"""Configuration: one TOML file a process, read once into frozen structs; unknown keys are refused."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from shared.errors import Code, CrystalError, InputError, PermanentError
from shared.memory.model import LADDERS
from shared.scope import tenant_name
from shared.units import MIB, parse_bytes, parse_seconds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
Level = Annotated[int, msgspec.Meta(ge=1, le=19)]

# Sizes and durations may be written as "64MiB" and "250ms"; the suffix of a key says which.
_SIZE_SUFFIX = "_bytes"
_TIME_SUFFIX = "_s"


class DoorConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The local door: a unix socket always, loopback TCP by choice (then a token is required)."""

    socket: str = ""
    """Path of the unix socket; empty = DATA_DIR/edge.sock."""
    listen: str = ""
    """`127.0.0.1:PORT` to also listen on loopback; empty = unix socket only."""
    token_file: str = ""
    """File that holds the bearer token of the loopback listener."""


class LinkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the hub is. No endpoint = the edge works alone and says so."""

    endpoint: str = ""
    """`tcp://HOST:PORT` of the hub."""
    hub_key_file: str = ""
    """Public key of the hub (made by `crystalmem keys new`)."""
    key_file: str = ""
    """Secret key of this edge (0600)."""


class ArchiveConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the hub may hold of this tenant beyond residues."""

    mode: Literal["never", "demoted", "always"] = "demoted"
    grace_s: Annotated[float, msgspec.Meta(ge=0.0, le=60.0)] = 2.0
    """How long a squeeze waits for layers to be acknowledged before it drops them."""
    bytes_per_stage: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Cap on bytes fetched from the archive in a stage; 0 = no limit."""


class MemoryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Budget, ladder and the paper's constants."""

    provision_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**50)] = 64 * MIB
    """B0, the provision that `budget set --fraction` is a fraction of."""
    ladder: str = "product"
    policy: Literal["crystalmem", "keep_all", "lru"] = "crystalmem"
    eviction: Literal["last_resort", "priced"] = "priced"
    """`priced` = an entry goes where that is cheapest; `last_resort` = when no rung is left (paper)."""
    gate: Literal["strict", "paper"] = "strict"
    accept_judge: bool = False
    """Take a draft that the gate's rules leave open when the hub's judge said yes."""
    valuation: Literal["scaled", "paper"] = "scaled"
    """`scaled` = spec.md 4; `paper` = raw Eq. 9 with tau = .001."""
    coupling: Annotated[float, msgspec.Meta(ge=0.0, le=10.0)] = 0.3
    """lambda of Eq. 9; 0 = the lite configuration."""
    rho: Fraction = 0.10
    """Share of a stage's serving tokens that regeneration may spend (Eq. 10)."""
    stage_max_s: Positive = 3600.0
    pack_level: Level = 12
    """zstd level of a squeeze (12: .091 of a transcript at 24 us a KB; 3: .147 at 9 us)."""


class IdleConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When promotions, archive-ahead and tidying may run."""

    window_s: Annotated[float, msgspec.Meta(ge=0.0, le=86400.0)] = 0.25
    """No recall for this long opens an idle window."""
    patience_s: Annotated[float, msgspec.Meta(ge=0.0, le=86400.0)] = 30.0
    """After so long without a window, one entry is moved every `pace_s`."""
    pace_s: Positive = 1.0


class EmbedderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What finds entries by meaning. Absent weights or library: by words alone, and `status` says so."""

    model: str = "minilm"
    """Folder below `models_dir` with an embedder.json, or the path of one; `none` = by words alone."""
    models_dir: str = ""
    """Where `crystalmem models prepare` puts models; empty = models/ in the data directory."""
    provider: Literal["cpu", "cuda", "tensorrt"] = "cpu"
    """Must be the session's first, or the daemon does not start."""
    allow_cpu: bool = False
    """Start on the CPU, and say so, where the provider is not there."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    query_timeout_s: Annotated[float, msgspec.Meta(gt=0.0, le=60.0)] = 1.0
    """A query without a vector by then is answered by words alone."""

    @property
    def folder(self) -> Path | None:
        """The model's folder; None = by words alone."""
        if self.model in {"", "none"}:
            return None
        base = Path(self.models_dir).expanduser() if self.models_dir else default_models_dir()
        return base / Path(self.model).expanduser()


class OnDeviceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The language model on the board itself, in a process of its own. No folder = none."""

    folder: str = ""
    """Folder that `crystalmem models prepare` made; empty = no on-device model."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    memory_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**40)] = 0
    """Most memory that the model's process may hold; 0 = from the size of its files."""
    relevel: bool = False
    """In idle windows the model chooses which sentences of an entry outlive the others. Off: the small
    models that were measured keep fewer answers than the distiller alone (docs/ondevice.md)."""
    regenerate: bool = True
    """Drafts from this model while the hub is away or generates nothing."""
    max_prompt_tokens: Annotated[int, msgspec.Meta(ge=64, le=32768)] = 1024
    """A longer prompt is not run."""
    idle_unload_s: Positive = 300.0
    """Unused for this long, the model gives its memory back."""


class EdgeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything `crystalmem edge run` reads. Every key has a default: no file is needed."""

    tenant: str = "default"
    data_dir: str = ""
    memory: MemoryConfig = msgspec.field(default_factory=MemoryConfig)
    archive: ArchiveConfig = msgspec.field(default_factory=ArchiveConfig)
    link: LinkConfig = msgspec.field(default_factory=LinkConfig)
    door: DoorConfig = msgspec.field(default_factory=DoorConfig)
    idle: IdleConfig = msgspec.field(default_factory=IdleConfig)
    embedder: EmbedderConfig = msgspec.field(default_factory=EmbedderConfig)
    ondevice: OnDeviceConfig = msgspec.field(default_factory=OnDeviceConfig)

    @property
    def directory(self) -> Path:
        """Where this edge keeps its data."""
        return Path(self.data_dir).expanduser() if self.data_dir else default_data_dir() / "edge"

    @property
    def socket_path(self) -> Path:
        """The unix socket of the local door."""
        return Path(self.door.socket).expanduser() if self.door.socket else self.directory / "edge.sock"


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """OpenAI-compatible endpoints of one model. No URL = no generative source."""

    url: str = ""
    urls: tuple[str, ...] = ()
    """More endpoints that serve the same model; the healthy ones share the work."""
    name: str = ""
    api_key_file: str = ""
    timeout_s: Positive = 30.0
    stall_s: Positive = 20.0
    """An engine whose /metrics show no token moving for so long, with drafts in flight, is drained."""
    max_tokens: Annotated[int, msgspec.Meta(ge=16, le=8192)] = 1024
    prompt_tokens: Annotated[int, msgspec.Meta(ge=512, le=131072)] = 3072
    """Longest prompt, estimated from above; neighbours are left out first."""
    neighbours: Annotated[int, msgspec.Meta(ge=0, le=16)] = 2
    """Texts of neighbouring entries in a prompt, for wording only."""
    judge_threshold: Fraction = 0.0
    """Least probability of "yes" for a claim that the gate's rules leave open; 0 = no judge."""
    max_in_flight: Annotated[int, msgspec.Meta(ge=1, le=64)] = 16
    """Most drafts at one endpoint at once; below it the engine's own queue decides."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Every URL once, in order."""
        return tuple(dict.fromkeys(url for url in (self.url, *self.urls) if url))


class HubConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything `crystalmem hub run` reads."""

    listen: str = "tcp://127.0.0.1:8377"
    data_dir: str = ""
    key_file: str = ""
    """Secret key of the hub (0600); empty = DATA_DIR/keys/hub.key, made at first start."""
    edges_file: str = ""
    """Allow-list; empty = DATA_DIR/edges.toml."""
    quota_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)] = 1024 * MIB
    """Archive bytes one tenant may hold."""
    rho: Fraction = 0.10
    gate: Literal["strict", "paper"] = "strict"
    model: ModelConfig = msgspec.field(default_factory=ModelConfig)

    @property
    def directory(self) -> Path:
        """Where the hub keeps its data."""
        return Path(self.data_dir).expanduser() if self.data_dir else default_data_dir() / "hub"


ConfigT = TypeVar("ConfigT", EdgeConfig, HubConfig)


def default_data_dir() -> Path:
    """The user's data directory (XDG), or systemd's StateDirectory where there is one."""
    state = os.environ.get("STATE_DIRECTORY", "")
    if state:
        return Path(state.split(":")[0])
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "crystalmem"


def default_models_dir() -> Path:
    """Where prepared models lie, one folder each: neither budget nor state (spec.md 3)."""
    return default_data_dir() / "models"


def load(path: Path | None, kind: type[ConfigT], overrides: Mapping[str, object] | None = None) -> ConfigT:
    """Read `path` (None = all defaults), then set dotted `overrides`; PermanentError names key and fix."""
    tree: dict[str, object] = {}
    if path is not None:
        tree = _read(path)
    for dotted, value in (overrides or {}).items():
        _set(tree, dotted, value)
    where = str(path) if path is not None else "the command line"
    try:
        config = msgspec.convert(_with_units(tree, where), kind)
    except msgspec.ValidationError as problem:
        raise _explained(problem, kind, where) from None
    _check(config, where)
    return config


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise PermanentError(
            Code.BAD_CONFIG, "the configuration file is missing", path=str(path), hint="Check --config"
        ) from None
    except UnicodeDecodeError as problem:
        raise PermanentError(
            Code.BAD_CONFIG, "the configuration file is not UTF-8", path=str(path), offset=problem.start
        ) from None
    except tomllib.TOMLDecodeError as problem:
        raise PermanentError(
            Code.BAD_CONFIG, f"the configuration file is not TOML: {problem}", path=str(path)
        ) from None
    except OSError as problem:
        raise PermanentError(
            Code.BAD_CONFIG, f"the configuration file cannot be read: {problem.strerror}", path=str(path)
        ) from None


def _set(tree: dict[str, object], dotted: str, value: object) -> None:
    *parents, leaf = dotted.split(".")
    node = tree
    for name in parents:
        below = node.setdefault(name, {})
        if not isinstance(below, dict):
            raise PermanentError(Code.BAD_CONFIG, "a table was expected", key=name)
        node = below
    node[leaf] = value


def _with_units(node: Mapping[str, object], where: str) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in node.items():
        if isinstance(value, dict):
            result[key] = _with_units(value, where)
        elif isinstance(value, str) and key.endswith((_SIZE_SUFFIX, _TIME_SUFFIX)):
            parse = parse_bytes if key.endswith(_SIZE_SUFFIX) else parse_seconds
            try:
                result[key] = parse(value)
            except CrystalError as problem:
                raise PermanentError(
                    Code.BAD_CONFIG, problem.message, hint=problem.hint, key=key, value=value, where=where
                ) from None
        else:
            result[key] = value
    return result


def _explained(problem: msgspec.ValidationError, kind: type[msgspec.Struct], where: str) -> PermanentError:
    text = str(problem)
    unknown = re.search(r"unknown field `([^`]+)`", text)
    hint = "See docs/configuration.md for every key"
    if unknown is not None:
        near = difflib.get_close_matches(unknown[1], sorted(known_keys(kind)), n=1)
        hint = f"Did you mean `{near[0]}`?" if near else hint
    return PermanentError(Code.BAD_CONFIG, f"in {where}: {text}", hint=hint)


def known_keys(kind: type[msgspec.Struct]) -> set[str]:
    """Every key of a configuration struct and of its tables."""
    keys: set[str] = set()
    for name in kind.__struct_fields__:
        keys.add(name)
    for info in msgspec.structs.fields(kind):
        if isinstance(info.type, type) and issubclass(info.type, msgspec.Struct):
            keys |= known_keys(info.type)
    return keys


def _check(config: EdgeConfig | HubConfig, where: str) -> None:
    if isinstance(config, HubConfig):
        _check_model(config.model, where)
        return
    try:
        tenant_name(config.tenant)
    except InputError as problem:
        # The same rule as at the hub: a store may join one later.
        raise PermanentError(
            Code.BAD_CONFIG, f"in {where}: {problem.message}", hint=problem.hint, value=config.tenant[:80]
        ) from None
    if config.memory.ladder not in LADDERS:
        raise PermanentError(
            Code.BAD_CONFIG, f"in {where}: no such ladder", value=config.memory.ladder, known=sorted(LADDERS)
        )
    if config.link.endpoint and not (config.link.hub_key_file and config.link.key_file):
        raise PermanentError(
            Code.BAD_CONFIG,
            f"in {where}: link.endpoint needs link.hub_key_file and link.key_file",
            hint="Make a pair with `crystalmem keys new NAME`",
        )
    if config.door.listen and not config.door.token_file:
        raise PermanentError(
            Code.BAD_CONFIG,
            f"in {where}: door.listen needs door.token_file",
            hint="Write a random token into a 0600 file and name it",
        )


def _check_model(model: ModelConfig, where: str) -> None:
    if bool(model.endpoints) != bool(model.name):
        raise PermanentError(
            Code.BAD_CONFIG,
            f"in {where}: model.url and model.name go together",
            url=model.url,
            name=model.name,
        )
    for url in model.endpoints:
        if not re.match(r"https?://[^/\s]+", url):
            raise PermanentError(
                Code.BAD_CONFIG,
                f"in {where}: an endpoint's URL starts with http:// or https://",
                value=url[:80],
                hint="For example http://127.0.0.1:8011/v1",
            )

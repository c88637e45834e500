"""LangGraph's store for documents, over the same database: namespaces, filters, search by meaning, time to live."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
import orjson
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
)

from everthread.adapters.checkpoints.bridge import Bridge, require_bridge
from everthread.core.clock import Clock, from_micros, system_clock, to_micros
from everthread.core.errors import Conflict, Invalid
from everthread.core.ids import LOCAL, check_id, check_text
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.history.ingest import dump
from everthread.instance import Everthread

R = TypeVar("R")
_MINUTE = 60_000_000


class LogStore(BaseStore):
    """Documents over an open database; `everthread.langgraph` has the one to use."""

    supports_ttl = True

    def __init__(
        self,
        et: Everthread,
        *,
        owner: str = LOCAL,
        index: IndexConfig | VectorSearch | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock = system_clock,
        bridge: Bridge | None = None,
    ) -> None:
        self._et = et
        self._owner = check_id(owner, "owner")
        self._clock = clock
        self._bridge = bridge
        self._meaning = VectorSearch(index) if isinstance(index, dict) else index
        self.ttl_config = ttl

    @property
    def _over(self) -> Bridge:
        return require_bridge(self._bridge, "EverthreadStore")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several things: first all reading, then all writing, in one transaction."""
        return await self._over.run(self._batch(list(ops)))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, and wait for it."""
        return self._call(self._batch(list(ops)))

    def _call(self, work: Coroutine[Any, Any, R]) -> R:
        try:
            bridge = self._over
        except Conflict:
            work.close()
            raise
        return bridge.call(work)

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        touched: list[ItemKey] = []
        results = [await self._read(op, touched) for op in ops]
        puts = {_key_of(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        changes = ItemChanges(
            put=[await self._item(key, op) for key, op in puts.items() if op.value is not None],
            delete=[key for key, op in puts.items() if op.value is None],
            touch=touched,
        )
        if puts or touched:
            await self._et.store.items.change(self._owner, changes)
        return results

    async def _read(self, op: Op, touched: list[ItemKey]) -> Result:
        if isinstance(op, GetOp):
            found = await self._et.store.items.get(self._owner, [_key_of(op.namespace, op.key)])
            touched += _keys_to_refresh(found, op.refresh_ttl)
            return Item(**_fields(found[0])) if found else None
        if isinstance(op, SearchOp):
            ranked = await self._search(op)
            touched += _keys_to_refresh([item for item, _ in ranked], op.refresh_ttl)
            return [SearchItem(**_fields(item), score=score) for item, score in ranked]
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(op)
        return None

    async def _search(self, op: SearchOp) -> list[tuple[StoredItem, float | None]]:
        found = await self._et.store.items.under(self._owner, _join_namespace(op.namespace_prefix))
        meant = [item for item in found if not op.filter or _matches_filter(item, op.filter)]
        scored: list[tuple[StoredItem, float | None]] = [(item, None) for item in meant]
        if op.query and self._meaning is not None:
            scored = await self._meaning.ranked(op.query, meant)
        return scored[op.offset : op.offset + op.limit]

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = [tuple(name.split(".")) for name in await self._et.store.items.namespaces(self._owner)]
        meant = [
            name for name in names if all(namespace_matches(name, condition) for condition in op.match_conditions or ())
        ]
        cut = sorted({name[: op.max_depth] for name in meant})
        return cut[op.offset : op.offset + op.limit]

    async def _item(self, key: ItemKey, op: PutOp) -> StoredItem:
        assert op.value is not None
        now = to_micros(self._clock())
        if op.ttl is not None and not op.ttl > 0:
            raise Invalid(f"must be more than 0 minutes, or None for ever, not {op.ttl}", field="ttl")
        ttl = None if op.ttl is None else int(op.ttl * _MINUTE)
        plain, value = _as_json(op.value)
        model, vectors = None, None
        if self._meaning is not None and op.index is not False:
            model, vectors = await self._meaning.of(plain, op.index)
        return StoredItem(*key, value, now, now, None if ttl is None else now + ttl, ttl, model, vectors)


def _as_json(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], bytes]:
    """A document and its bytes, with times, ids, enums and dataclasses written as LangGraph's own stores write them: as
    orjson does."""
    try:
        return value, dump(value, field="value")
    except Invalid as problem:
        try:
            plain = json.loads(json.dumps(value, default=lambda part: orjson.loads(orjson.dumps(part))))
        except (TypeError, ValueError, RecursionError):
            raise problem from None
    return plain, dump(plain, field="value")


class VectorSearch:
    """Search by meaning, with whatever embedder it was set up with; one may serve several stores."""

    def __init__(self, index: IndexConfig) -> None:
        embed = index.get("embed")
        self._embeddings = ensure_embeddings(embed)
        self._fields = index.get("fields") or ["$"]
        self._dims = index.get("dims")
        self._model = embed if isinstance(embed, str) else f"{_name_of(embed)}:{self._dims}"

    async def of(self, value: Mapping[str, Any], fields: Sequence[str] | None) -> tuple[str | None, bytes | None]:
        """The vectors of an item's texts, and the model they are by."""
        paths = self._fields if fields is None else fields
        texts = [text for path in paths for text in get_text_at_path(value, path)]
        if not texts:
            return None, None
        vectors = await self._embeddings.aembed_documents(texts)
        if self._dims is not None and any(len(vector) != self._dims for vector in vectors):
            raise Invalid(
                f"is {self._dims}, but the embedder gives vectors of {len(vectors[0])} dimensions; set it to that",
                field="index.dims",
            )
        return self._model, pack_vectors(vectors)

    async def ranked(self, query: str, items: Sequence[StoredItem]) -> list[tuple[StoredItem, float | None]]:
        """The nearest first; those that have no vectors of this model come last."""
        asked = await self._embeddings.aembed_query(query)
        near: list[tuple[StoredItem, float | None]] = [
            (item, similarity(item.vectors, asked)) for item in items if item.vectors and item.model == self._model
        ]
        near.sort(key=lambda pair: cast(float, pair[1]), reverse=True)
        return near + [(item, None) for item in items if not item.vectors or item.model != self._model]


def _name_of(embed: object) -> str:
    if isinstance(embed, FunctionType):  # whose type says nothing
        return f"{embed.__module__}.{embed.__qualname__}"
    return type(embed).__qualname__


def _join_namespace(namespace: tuple[str, ...]) -> str:
    return ".".join(check_text(label, "namespace") for label in namespace)


def _key_of(namespace: tuple[str, ...], key: str) -> ItemKey:
    if not isinstance(key, str):
        raise Invalid(f"must be a string, not {type(key).__name__}", field="key")
    return ItemKey(_join_namespace(namespace), check_text(key, "key"))


def _matches_filter(item: StoredItem, filter: Mapping[str, Any]) -> bool:
    value = json.loads(item.value)
    return all(matches_value(value.get(key), wanted) for key, wanted in filter.items())


def _keys_to_refresh(items: Sequence[StoredItem], refresh: bool) -> list[ItemKey]:
    return [ItemKey(item.namespace, item.key) for item in items if refresh and item.ttl_micros is not None]


def _fields(item: StoredItem) -> dict[str, Any]:
    return {
        "namespace": tuple(item.namespace.split(".")),
        "key": item.key,
        "value": json.loads(item.value),
        "created_at": from_micros(item.created_at),
        "updated_at": from_micros(item.updated_at),
    }


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
Namespace = tuple[str, ...]


def matches_value(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter asks for; an operator that is not known is refused."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(key).startswith("$") for key in wanted):
        return all(_compare(value, name, bound) for name, bound in wanted.items())
    return isinstance(value, Mapping) and all(matches_value(value.get(key), inner) for key, inner in wanted.items())


def _compare(value: Any, name: str, bound: Any) -> bool:
    if name not in _OPERATORS:
        raise Invalid(f"unknown operator {name!r}; use one of {', '.join(_OPERATORS)}", field="filter")
    try:
        return bool(_OPERATORS[name](value, bound))
    except TypeError:  # a text is neither less nor more than a number
        return False


def namespace_matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, with a path in which `*` stands for any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))


def pack_vectors(vectors: Sequence[Sequence[float]]) -> bytes:
    """Vectors of one item, as the database keeps them."""
    return np.asarray(vectors, dtype=np.float32).tobytes()


def similarity(packed: bytes, query: Sequence[float]) -> float:
    """How near the nearest of an item's vectors is to a question, by the cosine between them."""
    asked = np.asarray(query, dtype=np.float32)
    vectors = np.frombuffer(packed, dtype=np.float32).reshape(-1, len(asked))
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
    return float(np.max(vectors @ asked / np.where(norms == 0, 1, norms)))

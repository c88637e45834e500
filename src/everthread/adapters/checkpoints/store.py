"""LangGraph's store for documents, over the same database: namespaces, filters, search by meaning, time to live."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from everthread.adapters.checkpoints.bridge import Bridge, known
from everthread.adapters.checkpoints.matches import is_in, matches, pack_vectors, similarity
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
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock = system_clock,
        bridge: Bridge | None = None,
    ) -> None:
        self._et = et
        self._owner = check_id(owner, "owner")
        self._clock = clock
        self._bridge = bridge
        self._meaning = None if index is None else _Meaning(index)
        self.ttl_config = ttl

    @property
    def _over(self) -> Bridge:
        return known(self._bridge, "EverthreadStore")

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
            touched += _lives_on(found, op.refresh_ttl)
            return Item(**_fields(found[0])) if found else None
        if isinstance(op, SearchOp):
            ranked = await self._search(op)
            touched += _lives_on([item for item, _ in ranked], op.refresh_ttl)
            return [SearchItem(**_fields(item), score=score) for item, score in ranked]
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(op)
        return None

    async def _search(self, op: SearchOp) -> list[tuple[StoredItem, float | None]]:
        found = await self._et.store.items.under(self._owner, _joined(op.namespace_prefix))
        meant = [item for item in found if not op.filter or _is_meant(item, op.filter)]
        scored: list[tuple[StoredItem, float | None]] = [(item, None) for item in meant]
        if op.query and self._meaning is not None:
            scored = await self._meaning.ranked(op.query, meant)
        return scored[op.offset : op.offset + op.limit]

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = [tuple(name.split(".")) for name in await self._et.store.items.namespaces(self._owner)]
        meant = [name for name in names if all(is_in(name, condition) for condition in op.match_conditions or ())]
        cut = sorted({name[: op.max_depth] for name in meant})
        return cut[op.offset : op.offset + op.limit]

    async def _item(self, key: ItemKey, op: PutOp) -> StoredItem:
        assert op.value is not None
        now = to_micros(self._clock())
        ttl = None if op.ttl is None else int(op.ttl * _MINUTE)
        model, vectors = None, None
        if self._meaning is not None and op.index is not False:
            model, vectors = await self._meaning.of(op.value, op.index)
        value = dump(op.value, field="value")
        return StoredItem(*key, value, now, now, None if ttl is None else now + ttl, ttl, model, vectors)


class _Meaning:
    """Search by meaning, with whatever embedder it was set up with."""

    def __init__(self, index: IndexConfig) -> None:
        self._embeddings = ensure_embeddings(index.get("embed"))
        self._fields = index.get("fields") or ["$"]
        embed = index.get("embed")
        self._model = embed if isinstance(embed, str) else f"{type(embed).__qualname__}:{index.get('dims')}"

    async def of(self, value: Mapping[str, Any], fields: Sequence[str] | None) -> tuple[str | None, bytes | None]:
        """The vectors of an item's texts, and the model they are by."""
        paths = self._fields if fields is None else fields
        texts = [text for path in paths for text in get_text_at_path(value, tokenize_path(path))]
        if not texts:
            return None, None
        return self._model, pack_vectors(await self._embeddings.aembed_documents(texts))

    async def ranked(self, query: str, items: Sequence[StoredItem]) -> list[tuple[StoredItem, float | None]]:
        """The nearest first; those that have no vectors of this model come last."""
        asked = await self._embeddings.aembed_query(query)
        near: list[tuple[StoredItem, float | None]] = [
            (item, similarity(item.vectors, asked)) for item in items if item.vectors and item.model == self._model
        ]
        near.sort(key=lambda pair: cast(float, pair[1]), reverse=True)
        return near + [(item, None) for item in items if not item.vectors or item.model != self._model]


def _joined(namespace: tuple[str, ...]) -> str:
    return ".".join(check_text(label, "namespace") for label in namespace)


def _key_of(namespace: tuple[str, ...], key: str) -> ItemKey:
    if not isinstance(key, str):
        raise Invalid(f"must be a string, not {type(key).__name__}", field="key")
    return ItemKey(_joined(namespace), check_text(key, "key"))


def _is_meant(item: StoredItem, filter: Mapping[str, Any]) -> bool:
    value = json.loads(item.value)
    return all(matches(value.get(key), wanted) for key, wanted in filter.items())


def _lives_on(items: Sequence[StoredItem], refresh: bool) -> list[ItemKey]:
    return [ItemKey(item.namespace, item.key) for item in items if refresh and item.ttl_micros is not None]


def _fields(item: StoredItem) -> dict[str, Any]:
    return {
        "namespace": tuple(item.namespace.split(".")),
        "key": item.key,
        "value": json.loads(item.value),
        "created_at": from_micros(item.created_at),
        "updated_at": from_micros(item.updated_at),
    }

"""Vectors in Milvus, for when they outgrow the database: a server by its address, or Milvus Lite in a folder.

Each embedder has a collection of its own, `conversation_episodes_…`, because a collection has one dimension. Milvus
keeps no text: ids, seqs and vectors. Filters are made of hashes and numbers that we compute, never of what a caller
said (Milvus Lite takes no bound parameters), and owners are told apart by them before anything is compared.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import grpc
from pymilvus import DataType, MilvusClient, MilvusException

from everthread.adapters.vectors import quantised
from everthread.core.embeddings import (
    IndexProgress,
    VectorHit,
    VectorPart,
    check_dimension,
    dimension_of,
    same_dimension,
)
from everthread.core.errors import Invalid, StoreError, StoreGone
from everthread.core.nouns import Ref

R = TypeVar("R")

COLLECTION = "conversation_episodes"
TIMEOUT_SECONDS = 10.0
MOST_ROWS = 16_384
"""The most rows that Milvus returns at once."""
_BATCH = 1000
_PROBLEMS = (MilvusException, grpc.RpcError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class MilvusAddress:
    """The address of a Milvus server, or the folder of Milvus Lite."""

    uri: str
    token: str = field(default="", repr=False)
    database: str = ""
    collection: str = COLLECTION

    @property
    def location(self) -> str:
        """Without secrets."""
        return self.uri


def parse(address: str) -> MilvusAddress:
    """`http://user:password@host:19530?database=…&collection=…`, or the path of a folder for Milvus Lite."""
    if not address.strip():
        raise Invalid("has no location; use milvus:http://host:19530 or milvus:data/vectors.db", field="vectors")
    if "://" not in address:
        return MilvusAddress(uri=address)
    parts = urlsplit(address)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if unknown := options.keys() - {"database", "collection"}:
        raise Invalid(
            f"unknown parameters: {', '.join(sorted(unknown))}; available: database, collection", field="vectors"
        )
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MilvusAddress(
        uri=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        token=f"{user}:{password}" if password else user,
        database=options.get("database", ""),
        collection=options.get("collection", COLLECTION),
    )


class MilvusVectors:
    """The vectors of one Milvus. It connects when it is first asked, and again after it was lost."""

    def __init__(self, address: str) -> None:
        self._address = parse(address)
        self._connecting = threading.Lock()
        self._making = threading.Lock()
        self._client: MilvusClient | None = None
        self._newest: dict[tuple[Ref, str], int] = {}
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="everthread-milvus")

    @property
    def about(self) -> str:
        return f"in Milvus at {self._address.location}"

    async def put(self, ref: Ref, model: str, parts: Sequence[VectorPart]) -> None:
        dimension = same_dimension(part.vector for part in parts)
        if dimension is None:
            return
        rows = [_row(ref, model, part) for part in parts]

        def work(client: MilvusClient) -> None:
            name = self._collection(model)
            self._ensure(client, name, model, dimension)
            for start in range(0, len(rows), _BATCH):
                client.upsert(name, data=rows[start : start + _BATCH], timeout=TIMEOUT_SECONDS)

        await self._ask(work)

    async def near(
        self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
    ) -> Sequence[VectorHit]:
        dimension, meant = dimension_of(vector), _filter(owner, conversation)

        def work(client: MilvusClient) -> Sequence[VectorHit]:
            name = self._collection(model)
            if limit < 1 or not client.has_collection(name):
                return []
            check_dimension(dimension, _dimension(client, name), model)
            (found,) = client.search(
                name,
                data=[quantised.floats(vector).tolist()],
                filter=meant,
                limit=min(limit, MOST_ROWS),
                output_fields=["conversation", "seq", "part"],
                timeout=TIMEOUT_SECONDS,
            )
            return [_near(hit) for hit in found]

        return sorted(await self._ask(work), key=lambda near: (-near.score, -near.seq, near.part))

    async def forget(
        self,
        owner: str,
        conversation: str | None = None,
        *,
        seqs: Sequence[int] | None = None,
        model: str | None = None,
    ) -> int:
        meant = _filter(owner, conversation)
        clause = "" if seqs is None else f" and seq in [{', '.join(str(int(seq)) for seq in seqs)}]"

        def work(client: MilvusClient) -> int:
            self._newest.clear()
            names = self._collections(client) if model is None else [self._collection(model)]
            gone = 0
            for name in names:
                if client.has_collection(name):
                    gone += _count(client, name, meant + clause)
                    client.delete(name, filter=meant + clause, timeout=TIMEOUT_SECONDS)
            return gone

        return 0 if seqs is not None and not seqs else await self._ask(work)

    async def indexed(self, ref: Ref) -> Mapping[str, IndexProgress]:
        meant = _filter(*ref)

        def work(client: MilvusClient) -> Mapping[str, IndexProgress]:
            found = {}
            for name in self._collections(client):
                if parts := _count(client, name, meant):
                    found[_model_of(client, name)] = IndexProgress(parts, self._newest_seq(client, ref, name, meant))
            return found

        return await self._ask(work)

    async def models(self) -> Mapping[str, int]:
        def work(client: MilvusClient) -> Mapping[str, int]:
            counts = {name: _count(client, name, "") for name in self._collections(client)}
            return {_model_of(client, name): parts for name, parts in counts.items() if parts}

        return await self._ask(work)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, client.close)

    # -- below: in threads ---------------------------------------------------------------------------------

    async def _ask(self, work: Callable[[MilvusClient], R]) -> R:
        """Run it in a thread, within the timeout; errors of Milvus become our own."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(2 * TIMEOUT_SECONDS):
                return await loop.run_in_executor(self._threads, lambda: work(self._connected()))
        except TimeoutError as problem:
            raise StoreGone(f"{self.about} does not answer; nothing depends on it but finding by meaning") from problem
        except _PROBLEMS as problem:
            raise self._failed(problem) from problem

    def _connected(self) -> MilvusClient:
        with self._connecting:
            if self._client is None:
                where = self._address
                self._client = MilvusClient(
                    uri=where.uri, token=where.token, db_name=where.database, timeout=TIMEOUT_SECONDS
                )
            return self._client

    def _failed(self, problem: Exception) -> StoreError:
        """Translate an error; a lost connection is opened again by the next call."""
        self._client = None
        said = problem.message if isinstance(problem, MilvusException) else type(problem).__name__
        return StoreGone(f"vectors {self.about} cannot be reached or failed: {said}; retry when it is back")

    def _collection(self, model: str) -> str:
        """Readable, and different for any two models."""
        slug = re.sub(r"\W+", "_", model, flags=re.ASCII)[:64].strip("_")
        return f"{self._address.collection}_{slug}_{blake2b(model.encode(), digest_size=4).hexdigest()}"

    def _collections(self, client: MilvusClient) -> list[str]:
        return [name for name in client.list_collections() if name.startswith(f"{self._address.collection}_")]

    def _ensure(self, client: MilvusClient, name: str, model: str, dimension: int) -> None:
        with self._making:
            if not client.has_collection(name):
                _make(client, name, dimension)
        check_dimension(dimension, _dimension(client, name), model)

    def _newest_seq(self, client: MilvusClient, ref: Ref, name: str, meant: str) -> int:
        """Milvus knows no maximum: ask for what is newer than the newest we know of, until nothing is."""
        known = self._newest.get((ref, name), 0)
        while rows := client.query(name, filter=f"{meant} and seq > {known}", output_fields=["seq"], limit=MOST_ROWS):
            known = max(int(row["seq"]) for row in rows)
        self._newest[ref, name] = known
        return known


def _make(client: MilvusClient, name: str, dimension: int) -> None:
    index = client.prepare_index_params()
    index.add_index("vector", index_type="AUTOINDEX", metric_type="IP")
    try:
        client.create_collection(name, schema=_schema(dimension), index_params=index, consistency_level="Strong")
    except MilvusException:
        if not client.has_collection(name):  # another process has made it meanwhile
            raise


def _schema(dimension: int) -> Any:
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", DataType.VARCHAR, max_length=64, is_primary=True)
    for name, size in (("owner_key", 64), ("conversation_key", 64), ("conversation", 1024), ("model", 1024)):
        schema.add_field(name, DataType.VARCHAR, max_length=size)
    for name in ("seq", "part"):
        schema.add_field(name, DataType.INT64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    return schema


def _row(ref: Ref, model: str, part: VectorPart) -> dict[str, Any]:
    return {
        "key": _hash(*ref, model, str(part.seq), str(part.part)),
        "owner_key": _hash(ref.owner),
        "conversation_key": _hash(*ref),
        "conversation": ref.id,
        "model": model,
        "seq": part.seq,
        "part": part.part,
        "vector": quantised.floats(part.vector).tolist(),
    }


def _hash(*parts: str) -> str:
    return blake2b("\x00".join(parts).encode(), digest_size=16).hexdigest()


def _filter(owner: str, conversation: str | None) -> str:
    """The filter of a conversation, or of all that an owner has."""
    key = _hash(owner) if conversation is None else _hash(owner, conversation)
    return f'{"owner_key" if conversation is None else "conversation_key"} == "{key}"'


def _near(hit: Mapping[str, Any]) -> VectorHit:
    entity = hit["entity"]
    return VectorHit(entity["conversation"], int(entity["seq"]), int(entity["part"]), float(hit["distance"]))


def _count(client: MilvusClient, name: str, meant: str) -> int:
    rows: Iterable[Mapping[str, Any]] = client.query(name, filter=meant, output_fields=["count(*)"])
    return sum(int(row["count(*)"]) for row in rows)


def _model_of(client: MilvusClient, name: str) -> str:
    rows: Iterable[Mapping[str, Any]] = client.query(name, filter="seq > 0", output_fields=["model"], limit=1)
    return str(next(iter(rows))["model"])


def _dimension(client: MilvusClient, name: str) -> int:
    fields = client.describe_collection(name)["fields"]
    return next(int(one["params"]["dim"]) for one in fields if one["name"] == "vector")

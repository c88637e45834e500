/** What an erase reached and could not reach, in the kinds of things that a person knows. */

export type ErasedKind = "messages" | "entries" | "index" | "summaries" | "memories" | "vectors" | "files" | "events" | "states" | "copies" | "rest";

/** The tables of the service that hold them. Of a message every stored text is an entry, or a part of one. */
const TABLES: Readonly<Record<string, ErasedKind | null>> = {
  entries: "entries", payloads: null, conversations: null,
  words: "index", message_facts: "index",
  compactions: "summaries", notes: "memories", vectors: "vectors", workspace_files: "files", blobs: "files",
  run_events: "events", turns: "events",
  agent_checkpoints: "states", agent_writes: "states", items: "states",
  answers: "copies", replies: "copies", import_lines: "copies", import_sources: "copies",
};

/** How many of each kind, without those of which there were none. */
export function erasedKinds(reached: Readonly<Record<string, number>>, isMessage: boolean): readonly (readonly [ErasedKind, number])[] {
  const found = new Map<ErasedKind, number>();
  for (const [table, rows] of Object.entries(reached)) {
    const known = table in TABLES ? TABLES[table]! : "rest";
    const kind = known === "entries" && isMessage ? "messages" : known;
    if (kind !== null && rows > 0) found.set(kind, (found.get(kind) ?? 0) + rows);
  }
  const first = (kind: ErasedKind) => (kind === "messages" || kind === "entries" ? 0 : kind === "rest" ? 2 : 1);
  return [...found].sort(([one], [other]) => first(one) - first(other));
}

/** How the service's notes about what is out of its reach begin. */
const BEGINNINGS = {
  "backups and exports": "backups", "file-system snapshots": "snapshots", "what other processes": "processes", "ids of conversations": "ids", "quotes of the message": "quotes",
  "what belongs to the owner": "owner", replicas: "replicas", "the server's write-ahead log": "log", "the server's own log": "serverLog",
  "old rows": "rows", vectors: "vectors", "files that hold vectors": "vectors", "files in": "files", "the records of legal holds": "holds",
} as const;

export type OutOfReach = (typeof BEGINNINGS)[keyof typeof BEGINNINGS];

/** Which note it is; null for one that the page does not know. */
export function outOfReach(note: string): OutOfReach | null {
  return Object.entries(BEGINNINGS).find(([beginning]) => note.startsWith(beginning))?.[1] ?? null;
}

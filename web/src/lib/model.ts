/** What the page shows, apart from how it came over the wire. */

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface Message {
  readonly id: string;
  readonly seq: number;
  readonly role: string;
  readonly name: string | null;
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** The call that a tool's message answers. */
  readonly answers: string | null;
  readonly images: readonly string[];
  /** What came with it and is not here, by its name. */
  readonly attachments: readonly string[];
  readonly tokens: number;
  readonly saidAt: string;
  readonly parentSeq: number | null;
  readonly revision: number;
  readonly isDeleted: boolean;
  readonly isPinned: boolean;
  /** Whether the framework it was captured from took it out of its own state. */
  readonly isRemoved: boolean;
  /** Out of every view, because it is not to be trusted. */
  readonly isQuarantined: boolean;
  /** The door it came through. */
  readonly origin: string;
  /** False for what there is of an answer that was cut short. */
  readonly isComplete: boolean;
}

export interface Compaction {
  readonly id: string;
  readonly number: number;
  readonly level: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly summary: string;
  readonly trigger: string;
  readonly strategy: string;
  /** The agent or framework that made it for itself; null for one of ours. */
  readonly madeBy: string | null;
  readonly originalCount: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly factsTotal: number;
  readonly factsKept: number;
  readonly seconds: number;
  readonly createdAt: string;
  /** Whether it stands for its originals on the branch in sight, itself or within one that condenses it. */
  readonly isLive: boolean;
  /** When it ceased to stand for its originals: undone, or no longer true to them. */
  readonly endedAt: string | null;
}

/** A part of the request that a model gets. */
export interface Part {
  readonly kind: string;
  readonly tokens: number;
  readonly seqs: readonly number[];
  readonly isExact: boolean;
}

export interface Gauge {
  readonly used: number;
  readonly limit: number;
  /** Where compaction begins, in tokens; null where that is not told, as of a request of long ago. */
  readonly mark: number | null;
  /** Messages that no summary stands for. */
  readonly uncovered: number;
  readonly parts: readonly Part[];
  readonly isExact: boolean;
  /** The model that the figures are for. */
  readonly model: string | null;
  /** The messages that the model sees as they are. */
  readonly windowSeqs: ReadonlySet<number>;
}

/** One of several messages in the same place, and the branch that shows it. */
export interface Version {
  readonly message: Message;
  readonly branch: string;
}

/** What the branch in sight has of the seqs of its conversation. */
export interface OpenBranch {
  /** The greatest. */
  readonly lastSeq: number;
  /** Those that were said on another branch before this one went on from a message. */
  readonly gap: Gap;
}

export interface Gap {
  readonly after: number;
  readonly length: number;
}

/** The list of conversations as it is shown: pinned ones first, then by day, subagents' under the one that called them. */

export interface Listed {
  readonly id: string;
  readonly title: string | null;
  readonly parentId: string | null;
  readonly messages: number;
  readonly createdAt: string;
  /** When something was said last; where nothing was yet, when it began. */
  readonly saidAt: string;
  readonly isPinned: boolean;
  readonly isDeleted: boolean;
  readonly isOffRecord: boolean;
  /** Whether there is a link with which anybody may read it. */
  readonly isShared: boolean;
  /** Where the person put it; empty for nowhere. */
  readonly folder: string;
  readonly tags: readonly string[];
  readonly feedback: Readonly<Record<string, Feedback>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What the person thinks of an answer, by the id of its message. */
export interface Feedback {
  readonly rating: "good" | "bad";
  readonly reason: string | null;
}

/** In a conversation's metadata, which may hold anything: where it stands in the list. */
export function arrangedIn(metadata: Readonly<Record<string, unknown>>): Pick<Listed, "isPinned" | "folder" | "tags" | "feedback"> {
  const { pinned, folder, tags, feedback } = metadata;
  return {
    isPinned: pinned === true,
    folder: typeof folder === "string" ? folder.trim() : "",
    tags: Array.isArray(tags) ? tags.filter((one): one is string => typeof one === "string" && one.trim() !== "") : [],
    feedback: Object.fromEntries(
      Object.entries(isRecord(feedback) ? feedback : {}).flatMap(([id, one]) =>
        isRecord(one) && (one["rating"] === "good" || one["rating"] === "bad") ? [[id, { rating: one["rating"], reason: typeof one["reason"] === "string" ? one["reason"] : null }]] : [],
      ),
    ),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** All folders, or all tags, of these conversations, each once, as one reads them. */
export function namesIn(all: readonly Listed[], kind: "folder" | "tags"): readonly string[] {
  return [...new Set(all.flatMap((one) => (kind === "folder" ? [one.folder] : one.tags)))].filter((name) => name !== "").sort((one, other) => one.localeCompare(other));
}

/** What a group has in common: when something was said last, by a name or a month; or its folder. */
export type Day = "pinned" | "today" | "yesterday" | "week" | { readonly month: string } | { readonly folder: string };

export type Line =
  | { readonly kind: "heading"; readonly key: string; readonly day: Day }
  | { readonly kind: "conversation"; readonly key: string; readonly conversation: Listed; readonly depth: number };

const DAY_MILLISECONDS = 86_400_000;

export function dayOf(moment: string, now: Date): Day {
  const date = new Date(moment);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const time = date.getTime();
  if (time >= midnight) return "today";
  if (time >= midnight - DAY_MILLISECONDS) return "yesterday";
  if (time >= midnight - 7 * DAY_MILLISECONDS) return "week";
  return { month: `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}` };
}

/** One whose parent is not in the list stands at the top: nothing is hidden, but what is in a folder that is shut. */
export function linesOf(all: readonly Listed[], now: Date, shut: ReadonlySet<string> = new Set()): readonly Line[] {
  const known = new Set(all.map((one) => one.id));
  const children = new Map<string, Listed[]>();
  const top: Listed[] = [];
  for (const one of all) {
    if (one.parentId !== null && known.has(one.parentId) && one.parentId !== one.id) children.set(one.parentId, [...(children.get(one.parentId) ?? []), one]);
    else top.push(one);
  }
  top.sort((one, other) => Date.parse(other.saidAt) - Date.parse(one.saidAt));
  const lines: Line[] = [];
  const add = (one: Listed, depth: number) => {
    lines.push({ kind: "conversation", key: one.id, conversation: one, depth });
    for (const child of children.get(one.id) ?? []) add(child, depth + 1);
  };
  let last = "";
  const heading = (day: Day) => {
    const key = typeof day === "string" ? day : "folder" in day ? `folder ${day.folder}` : day.month;
    if (key !== last) lines.push({ kind: "heading", key: `day-${key}`, day });
    last = key;
  };
  for (const one of top.filter((each) => each.isPinned)) {
    heading("pinned");
    add(one, 0);
  }
  for (const folder of namesIn(top, "folder")) {
    heading({ folder });
    if (!shut.has(folder)) top.filter((each) => !each.isPinned && each.folder === folder).forEach((one) => add(one, 0));
  }
  for (const one of top.filter((each) => !each.isPinned && each.folder === "")) {
    heading(dayOf(one.saidAt, now));
    add(one, 0);
  }
  return lines;
}

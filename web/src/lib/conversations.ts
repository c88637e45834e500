/** The list of conversations as it is shown: pinned ones first, then by day, subagents' under the one that called them. */

export interface Listed {
  readonly id: string;
  readonly title: string | null;
  readonly parentId: string | null;
  readonly count: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly isPinned: boolean;
  readonly isDeleted: boolean;
  readonly isOffRecord: boolean;
  /** Whether there is a link with which anybody may read it. */
  readonly isShared: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** When something was said last: a name, or a month. */
export type Day = "pinned" | "today" | "yesterday" | "week" | { readonly month: string };

export type Line =
  | { readonly kind: "heading"; readonly key: string; readonly day: Day }
  | { readonly kind: "conversation"; readonly key: string; readonly conversation: Listed; readonly depth: number };

const DAY_MILLISECONDS = 86_400_000;

export function dayOf(moment: string, now: Date): Exclude<Day, "pinned"> {
  const date = new Date(moment);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const time = date.getTime();
  if (time >= midnight) return "today";
  if (time >= midnight - DAY_MILLISECONDS) return "yesterday";
  if (time >= midnight - 7 * DAY_MILLISECONDS) return "week";
  return { month: `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}` };
}

/** One whose parent is not in the list stands at the top: nothing is hidden. */
export function linesOf(all: readonly Listed[], now: Date): readonly Line[] {
  const known = new Set(all.map((one) => one.id));
  const children = new Map<string, Listed[]>();
  const top: Listed[] = [];
  for (const one of all) {
    if (one.parentId !== null && known.has(one.parentId) && one.parentId !== one.id) children.set(one.parentId, [...(children.get(one.parentId) ?? []), one]);
    else top.push(one);
  }
  top.sort((one, other) => Date.parse(other.updatedAt) - Date.parse(one.updatedAt));
  const lines: Line[] = [];
  const add = (one: Listed, depth: number) => {
    lines.push({ kind: "conversation", key: one.id, conversation: one, depth });
    for (const child of children.get(one.id) ?? []) add(child, depth + 1);
  };
  let last = "";
  const heading = (day: Day) => {
    const key = typeof day === "string" ? day : day.month;
    if (key !== last) lines.push({ kind: "heading", key: `day-${key}`, day });
    last = key;
  };
  for (const one of top.filter((each) => each.isPinned)) {
    heading("pinned");
    add(one, 0);
  }
  for (const one of top.filter((each) => !each.isPinned)) {
    heading(dayOf(one.updatedAt, now));
    add(one, 0);
  }
  return lines;
}

/** Conversations with the subagents' own under the one that called them. */

export interface Listed {
  readonly id: string;
  readonly title: string | null;
  readonly parentId: string | null;
  readonly count: number;
}

export interface Nested {
  readonly conversation: Listed;
  readonly children: readonly Nested[];
}

/** One whose parent is not in the list stands at the top: nothing is hidden. */
export function underParents(all: readonly Listed[]): readonly Nested[] {
  const known = new Set(all.map((one) => one.id));
  const of = new Map<string | null, Listed[]>();
  for (const one of all) {
    const parent = one.parentId !== null && known.has(one.parentId) && one.parentId !== one.id ? one.parentId : null;
    of.set(parent, [...(of.get(parent) ?? []), one]);
  }
  const nested = (parent: string | null): readonly Nested[] =>
    (of.get(parent) ?? []).map((conversation) => ({ conversation, children: nested(conversation.id) }));
  return nested(null);
}

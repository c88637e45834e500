/** How a conversation's questions are asked from this browser: which model answers, and what helps it. Storage may be closed to us. */


import { useMemo, useSyncExternalStore } from "react";

/** Under this name the draft and the choices of a conversation stand that is not there yet. */
export const NEW = "new";

export const SWITCHES = ["recall", "compaction", "memory", "retrieval"] as const;
export const PREFERENCES = ["default", "vision", "code", "reasoning"] as const;
export type Switch = (typeof SWITCHES)[number];
export type Preference = (typeof PREFERENCES)[number];

/** What is left out is as the server has it. */
export interface Choices {
  readonly model?: string;
  readonly model_pref?: Preference;
  readonly recall?: boolean;
  readonly compaction?: boolean;
  readonly memory?: boolean;
  readonly retrieval?: boolean;
}

const name = (conversation: string): string => `everthread.choices.${conversation}`;
const heard = new Set<() => void>();

function kept(conversation: string): string | null {
  try {
    return localStorage.getItem(name(conversation));
  } catch {
    return null;
  }
}

export function readChoices(conversation: string): Choices {
  return choicesFrom(kept(conversation));
}

/** The choices as they are, wherever on the page they are changed. */
export function useChoices(conversation: string): Choices {
  const found = useSyncExternalStore(listen, () => kept(conversation));
  return useMemo(() => choicesFrom(found), [found]);
}

function listen(listener: () => void): () => void {
  heard.add(listener);
  return () => heard.delete(listener);
}

export function keepChoices(conversation: string, choices: Choices): void {
  try {
    if (Object.keys(choices).length === 0) localStorage.removeItem(name(conversation));
    else localStorage.setItem(name(conversation), JSON.stringify(choices));
  } catch {
    // no storage here: the server's own ways are used
  }
  for (const listener of [...heard]) listener();
}

/** Only what is known, whatever stands there. */
export function choicesFrom(kept: string | null): Choices {
  let found: Record<string, unknown> = {};
  try {
    found = { ...(JSON.parse(kept ?? "{}") as object) };
  } catch {
    return {};
  }
  const model = typeof found["model"] === "string" && found["model"].trim() !== "" ? { model: found["model"].trim() } : {};
  const preference = PREFERENCES.find((one) => one === found["model_pref"]);
  const switches = SWITCHES.filter((one) => typeof found[one] === "boolean").map((one) => [one, found[one]]);
  return { ...model, ...(preference === undefined || preference === "default" ? {} : { model_pref: preference }), ...Object.fromEntries(switches) };
}

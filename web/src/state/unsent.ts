/** A question from the moment it is sent until the server has stored it: kept in this browser, so that neither a lost
 * connection nor a reload loses it. It goes out again under the same key, which makes it one question however often. */

import type { Question } from "../api/chat";

export interface Unsent extends Question {
  /** The idempotency key of the request. */
  readonly key: string;
}

const memory = new Map<string, Unsent>();
const name = (conversation: string | null): string => `everthread.unsent.${conversation ?? "new"}`;

export function readUnsent(conversation: string | null): Unsent | null {
  try {
    return unsentFrom(localStorage.getItem(name(conversation)));
  } catch {
    return memory.get(name(conversation)) ?? null;
  }
}

export function keepUnsent(unsent: Unsent): void {
  memory.set(name(unsent.conversation), unsent);
  try {
    localStorage.setItem(name(unsent.conversation), JSON.stringify(unsent));
  } catch {
    // no storage here, or no room: it lives as long as the page
  }
}

export function dropUnsent(unsent: Unsent): void {
  memory.delete(name(unsent.conversation));
  try {
    localStorage.removeItem(name(unsent.conversation));
  } catch {
    // no storage here
  }
}

/** Only what is whole, whatever stands there. */
export function unsentFrom(kept: string | null): Unsent | null {
  try {
    const found = JSON.parse(kept ?? "null") as Partial<Unsent> | null;
    return found !== null && typeof found.key === "string" && typeof found.message === "string" && found.message !== ""
      ? { key: found.key, message: found.message, conversation: found.conversation ?? null, files: found.files ?? [], choices: found.choices ?? {} }
      : null;
  } catch {
    return null;
  }
}

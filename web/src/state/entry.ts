/** Whether the server still takes the key that this page was opened with: one may be revoked at any time. */

import { useSyncExternalStore } from "react";

import { currentKey } from "./accounts";

let isIn = true;
const heard = new Set<() => void>();

/** A request was refused with this key. One that was changed meanwhile says nothing about the new one. */
export function reportRefused(key: string | null): void {
  if (key === currentKey()) change(false);
}

/** Somebody has signed in again. */
export function letIn(): void {
  change(true);
}

export function useIsIn(): boolean {
  return useSyncExternalStore(
    (listener) => {
      heard.add(listener);
      return () => heard.delete(listener);
    },
    () => isIn,
  );
}

function change(next: boolean): void {
  if (next === isIn) return;
  isIn = next;
  for (const listener of [...heard]) listener();
}

/** Whether the server can be reached. A request that finds nobody says so here; from then on the server is asked until it
 * is back, at once when the browser says that the network is, or when a laptop wakes up. */

import { useSyncExternalStore } from "react";

const PAUSES = [500, 1000, 2000, 3000];
const PATIENCE_MILLISECONDS = 4000;

let isUp = true;
let losses = 0;
const heard = new Set<() => void>();

export function isConnected(): boolean {
  return isUp;
}

/** Called with every change, until the function it gives is called. */
export function onConnection(listener: () => void): () => void {
  heard.add(listener);
  return () => heard.delete(listener);
}

export function useConnection(): boolean {
  return useSyncExternalStore(onConnection, isConnected);
}

/** A request found nobody. */
export function reportLost(): void {
  if (!isUp) return;
  losses += 1;
  change(false);
  void watch();
}

/** How often it was lost: what was asked for between two equal counts was answered. */
export function countLosses(): number {
  return losses;
}

/** Resolves when the server can be reached, or when it is no longer of interest. */
export function whenConnected(signal: AbortSignal): Promise<void> {
  if (isUp || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      stop();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const stop = onConnection(() => isUp && end());
    signal.addEventListener("abort", end);
  });
}

async function watch(): Promise<void> {
  for (let tries = 0; !isUp; tries++) {
    await pauseUnlessWoken(PAUSES[Math.min(tries, PAUSES.length - 1)]!);
    if (await isReady()) change(true);
  }
}

async function isReady(): Promise<boolean> {
  try {
    return (await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MILLISECONDS) })).ok;
  } catch {
    return false;
  }
}

/** A pause that ends when something says that it is worth trying: the network, or a person who looks. */
export function pauseUnlessWoken(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      document.removeEventListener("visibilitychange", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
    document.addEventListener("visibilitychange", end);
  });
}

function change(next: boolean): void {
  isUp = next;
  for (const listener of [...heard]) listener();
}

/** Downloads: fetched here, because a key may be needed, and handed to the browser to save. */

import { open } from "./http";
import type { Query } from "./wire";

export type Format = NonNullable<Query<"/conversations/{conversation_id}/export">["format"]>;

/** What an export is to have besides what was said. */
export interface Wanted {
  readonly thinking: boolean;
  readonly tools: boolean;
}

/** Save an export as a file, under the name that the service gives it. An archive is always whole. */
export async function download(conversation: string, format: Format, wanted: Wanted = { thinking: true, tools: true }): Promise<void> {
  const left = format === "archive" ? {} : { ...(wanted.thinking ? {} : { thinking: false }), ...(wanted.tools ? {} : { tools: false }) };
  const response = await open("get", "/conversations/{conversation_id}/export", { at: { conversation_id: conversation }, query: { format, ...left } });
  save(await response.blob(), nameIn(response.headers.get("Content-Disposition") ?? "") ?? `conversation.${format === "archive" ? "jsonl.zst" : format}`);
}

/** The name that a download brings: the exact one (RFC 5987), which may be Chinese, else the plain one. */
export function nameIn(disposition: string): string | null {
  const exact = /filename\*=UTF-8''([^;]+)/.exec(disposition)?.[1];
  if (exact !== undefined) return decodeURIComponent(exact);
  return /filename="([^"]+)"/.exec(disposition)?.[1] ?? null;
}

/** A file of a conversation; fetched, not linked to, because a key may be needed. */
export async function fetchFile(conversation: string, path: string): Promise<Blob> {
  return (await open("get", "/conversations/{conversation_id}/files/{path}", { at: { conversation_id: conversation, path } })).blob();
}

export async function downloadFile(conversation: string, path: string): Promise<void> {
  save(await fetchFile(conversation, path), path.split("/").at(-1) ?? "file");
}

function save(bytes: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(bytes);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

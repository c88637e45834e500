/** Downloads: fetched here, because a key may be needed, and handed to the browser to save. */

import { ask, path } from "./http";

/** Save an export as a file, under the name that the service gives it. */
export async function download(conversation: string, format: string): Promise<void> {
  const response = await ask(path`/conversations/${conversation}/export`, { query: { format } });
  const given = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
  save(await response.blob(), given ?? `conversation.${format === "archive" ? "jsonl.zst" : format}`);
}

/** Save a file of a conversation; fetched, not linked to, because a key may be needed. */
export async function downloadFile(conversation: string, name: string): Promise<void> {
  const place = name.split("/").map(encodeURIComponent).join("/");
  const response = await ask(`${path`/conversations/${conversation}/files`}/${place}`);
  save(await response.blob(), name.split("/").at(-1) ?? "file");
}

function save(bytes: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(bytes);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

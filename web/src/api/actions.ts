/** What needs no cache: downloads. */

import { ask, path } from "./http";

/** Save an export as a file, under the name that the service gives it. */
export async function download(conversation: string, format: string, isWhole: boolean): Promise<void> {
  const response = await ask(path`/conversations/${conversation}/export`, { query: { format, thinking: isWhole, tools: isWhole } });
  const given = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = given ?? `conversation.${format === "archive" ? "jsonl.zst" : format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Turns over the wire: asking, listening again, stopping. */

import { readChoices, type Choices } from "../state/choices";
import { call, open } from "./http";

export interface Question {
  readonly message: string;
  readonly conversation: string | null;
  /** Names of files of the conversation that go with it. */
  readonly files: readonly string[];
  readonly choices: Choices;
}

/** Asked twice under one key, it is one question. */
export function openChat({ message, conversation, files, choices }: Question, key: string, signal: AbortSignal): Promise<Response> {
  const where = conversation === null ? {} : { conversation_id: conversation };
  const body = { message, ...where, ...(files.length === 0 ? {} : { files: [...files] }), ...choices };
  return open("post", "/chat/stream", { body, headers: { "Idempotency-Key": key }, signal });
}

/** The rest of a turn's events, after the one with this number. */
export function openTurn(conversation: string, turn: string, after: number, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = after > 0 ? { "Last-Event-ID": String(after) } : {};
  return open("get", "/conversations/{conversation_id}/turns/{turn_id}/stream", { at: { conversation_id: conversation, turn_id: turn }, headers, signal });
}

export async function cancelTurn(conversation: string, turn: string): Promise<void> {
  await call("post", "/conversations/{conversation_id}/turns/{turn_id}/cancel", { at: { conversation_id: conversation, turn_id: turn } });
}

export function openAgain(conversation: string, message: string | null, key: string, signal: AbortSignal): Promise<Response> {
  const body = { stream: true, ...(message === null ? {} : { message_id: message }), ...readChoices(conversation) };
  return open("post", "/conversations/{conversation_id}/regenerate", { at: { conversation_id: conversation }, body, headers: { "Idempotency-Key": key }, signal });
}

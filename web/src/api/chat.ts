/** Turns over the wire: asking, listening again, stopping. */

import { readChoices } from "../state/choices";
import { call, open } from "./http";

export interface Question {
  readonly message: string;
  readonly conversation: string | null;
}

export function openChat(question: Question, signal: AbortSignal): Promise<Response> {
  const where = question.conversation === null ? {} : { conversation_id: question.conversation, ...readChoices(question.conversation) };
  return open("post", "/chat/stream", { body: { message: question.message, ...where }, signal });
}

/** The rest of a turn's events, after the one with this number. */
export function openTurn(conversation: string, turn: string, after: number, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = after > 0 ? { "Last-Event-ID": String(after) } : {};
  return open("get", "/conversations/{conversation_id}/turns/{turn_id}/stream", { at: { conversation_id: conversation, turn_id: turn }, headers, signal });
}

export async function cancelTurn(conversation: string, turn: string): Promise<void> {
  await call("post", "/conversations/{conversation_id}/turns/{turn_id}/cancel", { at: { conversation_id: conversation, turn_id: turn } });
}

export function openAgain(conversation: string, message: string | null, signal: AbortSignal): Promise<Response> {
  const body = { stream: true, ...(message === null ? {} : { message_id: message }), ...readChoices(conversation) };
  return open("post", "/conversations/{conversation_id}/regenerate", { at: { conversation_id: conversation }, body, signal });
}

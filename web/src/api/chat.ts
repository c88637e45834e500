/** Turns over the wire: asking, listening again, stopping. */

import { ask, path } from "./http";

export interface Question {
  readonly message: string;
  readonly conversation: string | null;
}

export function openChat(question: Question, signal: AbortSignal): Promise<Response> {
  const body = question.conversation === null ? { message: question.message } : { message: question.message, conversation_id: question.conversation };
  return ask("/chat/stream", { method: "POST", body, signal });
}

/** The rest of a turn's events, after the one with this number. */
export function openTurn(conversation: string, turn: string, after: number, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = after > 0 ? { "Last-Event-ID": String(after) } : {};
  return ask(path`/conversations/${conversation}/turns/${turn}/stream`, { headers, signal });
}

export async function cancelTurn(conversation: string, turn: string): Promise<void> {
  await ask(path`/conversations/${conversation}/turns/${turn}/cancel`, { method: "POST" });
}

export function openAgain(conversation: string, message: string | null, signal: AbortSignal): Promise<Response> {
  const body = message === null ? { stream: true } : { stream: true, message_id: message };
  return ask(path`/conversations/${conversation}/regenerate`, { method: "POST", body, signal });
}

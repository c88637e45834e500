/** An answer while it comes in: a pure step from event to event, so that a replay shows what was shown live. */

export interface LiveCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly result: string | null;
  readonly ok: boolean;
}

/** What is said, thought and called before tools answer: the history has a message for each. */
export interface LiveStep {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly LiveCall[];
}

export interface Answer {
  /** What was asked, for as long as the history does not have it; null where the history has it, as when it is answered again. */
  readonly question: { readonly text: string; readonly files: readonly string[]; readonly at: string } | null;
  readonly turnId: string | null;
  /** Where it is given; null for a new conversation, until the server has made it. */
  readonly conversationId: string | null;
  readonly questionId: string | null;
  /** The message that is being said now; when the answer is complete, the one that is kept of it. */
  readonly messageId: string | null;
  /** The number of the last event taken in; where a reconnect goes on. */
  readonly last: number;
  readonly steps: readonly LiveStep[];
  readonly isCompacted: boolean;
  /** Earlier messages that were brought back for this question. */
  readonly recalled: readonly number[];
  readonly state: "waiting" | "running" | "complete" | "failed" | "cancelled" | "interrupted";
  readonly error: { readonly code: string; readonly message: string; readonly retryable: boolean } | null;
  /** Whether the history was read after it ended. */
  readonly isRead: boolean;
}

export const NO_ANSWER: Answer = {
  question: null,
  turnId: null,
  conversationId: null,
  questionId: null,
  messageId: null,
  last: 0,
  steps: [],
  isCompacted: false,
  recalled: [],
  state: "waiting",
  error: null,
  isRead: false,
};

export type TurnEvent = { readonly number: number } & (
  | { readonly kind: "accepted"; readonly turn_id: string; readonly conversation_id: string; readonly question_id: string }
  | { readonly kind: "token" | "thinking"; readonly text: string; readonly message_id: string }
  | { readonly kind: "tool_call"; readonly id: string; readonly name: string; readonly arguments: unknown }
  | { readonly kind: "tool_result"; readonly id: string; readonly ok: boolean; readonly text: string }
  | { readonly kind: "compaction" | "state" }
  | { readonly kind: "recall"; readonly seqs: readonly number[] }
  | { readonly kind: "done" | "snapshot"; readonly state: string; readonly text: string }
  | { readonly kind: "failed"; readonly code: string; readonly message: string; readonly retryable: boolean; readonly text: string }
);

/** Whether a message tells that the history has the answer: it is this answer, or what a complete one answers, which comes with it. */
export function isOf(answer: Answer, id: string): boolean {
  return isOver(answer) && (id === answer.messageId || (answer.state === "complete" && id === answer.questionId));
}

/** How much of an answer stands below the history: what the history does not have yet; or how it ended, where it ended too soon. */
export function restOf(answer: Answer, history: readonly { readonly id: string; readonly role: string }[]): "all" | "ending" | null {
  const isKept = history.some((message) => isOf(answer, message.id));
  if (isKept) return answer.state === "complete" ? null : "ending";
  const isAnswered = answer.isRead && !["user", undefined].includes(history.at(-1)?.role); // it was erased, or another branch is open
  return isAnswered ? null : "all";
}

export function isOver(answer: Answer): boolean {
  return answer.state !== "waiting" && answer.state !== "running";
}

/** Take an event in. One that was taken before, as after a reconnect, changes nothing. */
export function step(answer: Answer, event: TurnEvent): Answer {
  if (event.number <= answer.last) return answer;
  return { ...answer, state: answer.state === "waiting" ? "running" : answer.state, ...change(answer, event), last: event.number };
}

function change(answer: Answer, event: TurnEvent): Partial<Answer> {
  switch (event.kind) {
    case "accepted":
      return { turnId: event.turn_id, conversationId: event.conversation_id, questionId: event.question_id };
    case "token":
      return { steps: saying(answer.steps, (now) => ({ text: now.text + event.text })), messageId: event.message_id };
    case "thinking":
      return { steps: saying(answer.steps, (now) => ({ thinking: now.thinking + event.text })) };
    case "tool_call":
      return { steps: calling(answer.steps, { id: event.id, name: event.name, arguments: JSON.stringify(event.arguments, null, 2), result: null, ok: true }) };
    case "tool_result":
      return { steps: answer.steps.map((one) => ({ ...one, calls: one.calls.map((call) => (call.id === event.id ? { ...call, result: event.text, ok: event.ok } : call)) })) };
    case "compaction":
      return { isCompacted: true };
    case "recall":
      return { recalled: event.seqs ?? [] };
    case "done":
    case "snapshot": // the events are gone, after their days: how it ended is known
      return { state: event.state as Answer["state"], steps: ending(answer.steps, event.text) };
    case "failed":
      return { state: "failed", steps: ending(answer.steps, event.text), error: { code: event.code, message: event.message, retryable: event.retryable } };
    default:
      return {};
  }
}

const NOTHING_SAID: LiveStep = { thinking: "", text: "", calls: [] };

/** Words go on with what is being said; after calls they begin a step of their own. */
function saying(steps: readonly LiveStep[], change: (now: LiveStep) => Partial<LiveStep>): readonly LiveStep[] {
  const last = steps.at(-1);
  const [before, now] = last === undefined || last.calls.length > 0 ? [steps, NOTHING_SAID] : [steps.slice(0, -1), last];
  return [...before, { ...now, ...change(now) }];
}

function calling(steps: readonly LiveStep[], call: LiveCall): readonly LiveStep[] {
  const last = steps.at(-1) ?? NOTHING_SAID;
  return [...steps.slice(0, -1), { ...last, calls: [...last.calls, call] }];
}

/** The last words as the server has them, which may be all that is left of the events. */
function ending(steps: readonly LiveStep[], text: string): readonly LiveStep[] {
  return text === "" ? steps : saying(steps, () => ({ text }));
}

/** Whether there is anything of it to keep. */
export function hasSaid(answer: Answer): boolean {
  return answer.steps.some((one) => one.text !== "" || one.thinking !== "" || one.calls.length > 0);
}

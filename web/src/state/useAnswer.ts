/** Asking and listening: one stream per answer. What breaks is taken up again, until the turn has ended: a question that the
 * server has not confirmed is sent again, of a turn that it has confirmed the rest is asked for. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { cancelTurn, openAgain, openChat, openTurn, type Question } from "../api/chat";
import { Problem } from "../api/http";
import { renew } from "../api/queries";
import { newKey } from "../lib/random";
import { eventsOf } from "../lib/sse";
import { isOver, NO_ANSWER, step, type Answer, type TurnEvent } from "./answer";
import { countLosses, pauseUnlessWoken, whenConnected } from "./connection";
import { dropUnsent, keepUnsent, type Unsent } from "./unsent";

export interface Asking {
  readonly answer: Answer | null;
  /** Ask; the question is kept until the server has it. Rejects when the server refuses it. */
  readonly ask: (question: Question) => Promise<void>;
  /** Go on with a question that the server had not confirmed when the page was left. */
  readonly askAgain: (unsent: Unsent) => Promise<void>;
  /** Listen to a turn that runs already, as after a reload. */
  readonly follow: (conversation: string, turn: string) => Promise<void>;
  /** Answer a message again; with null, answer the newest question. An answer that still comes in is stopped. */
  readonly again: (conversation: string, message: string | null) => Promise<void>;
  /** Stop the answer. What was asked and never confirmed comes back. */
  readonly stop: () => Question | null;
  readonly clear: () => void;
}

type Open = (signal: AbortSignal) => Promise<Response>;

const PAUSES = [200, 1000, 2000, 4000];
/** The server says that it is there every 15 seconds: whoever hears nothing for so long has lost it. */
const SILENCE_MILLISECONDS = 35_000;
const LOOK_MILLISECONDS = 3_000;

export function useAnswer(onConversation: (id: string) => void): Asking {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const now = useRef<Answer | null>(null);
  const unsent = useRef<Unsent | null>(null);
  const listening = useRef<AbortController | null>(null);
  const cache = useQueryClient();

  const show = useCallback((next: Answer | null) => {
    now.current = next;
    setAnswer(next);
  }, []);

  const confirm = useCallback(() => {
    if (unsent.current !== null) dropUnsent(unsent.current);
    unsent.current = null;
  }, []);

  const listen = useCallback(
    async (first: Open) => {
      listening.current?.abort();
      const control = (listening.current = new AbortController());
      const isMine = () => now.current !== null && !control.signal.aborted;
      const take = async (response: Response, hear: () => void) => {
        if (response.body === null) return;
        for await (const event of eventsOf(response.body, hear)) {
          if (!isMine()) return;
          const told = eventFrom(event.event, event.id, event.data);
          if (told === null) continue;
          if (told.kind === "accepted") {
            confirm();
            if (now.current?.conversationId === null) void cache.invalidateQueries({ queryKey: ["conversations"] });
            onConversation(told.conversation_id);
            if (told.question_id === "") void renew(cache); // answered again: the history ends with the question now
          }
          show(step(now.current!, told));
        }
      };
      for (let failures = 0; isMine(); ) {
        const { turnId, conversationId, last } = now.current!;
        try {
          const open = turnId === null || conversationId === null ? first : (signal: AbortSignal) => openTurn(conversationId, turnId, last, signal);
          await unlessSilent(control.signal, async (signal, hear) => take(await open(signal), hear));
        } catch (problem) {
          if (!isMine()) return;
          if (problem instanceof Problem && !problem.isRetryable) throw problem;
        }
        if (!isMine() || isOver(now.current!)) break;
        failures = now.current!.last > last ? 0 : failures + 1;
        await pauseUnlessWoken(PAUSES[Math.min(failures, PAUSES.length - 1)]!);
        await whenConnected(control.signal);
      }
      // until the history has been read, and not only asked for in vain, the answer stays where it came in
      for (let losses = -1; losses !== countLosses() && !control.signal.aborted; ) {
        losses = countLosses();
        await whenConnected(control.signal);
        await renew(cache);
      }
      if (control.signal.aborted) return;
      if (now.current !== null) show(now.current.state === "complete" ? null : { ...now.current, isRead: true });
    },
    [cache, confirm, onConversation, show],
  );

  useEffect(() => () => listening.current?.abort(), []);

  return useMemo(() => {
    const askAgain = async (kept: Unsent) => {
      unsent.current = kept;
      show({ ...NO_ANSWER, conversationId: kept.conversation, question: { text: kept.message, files: kept.files, at: new Date().toISOString() } });
      try {
        await listen((signal) => openChat(kept, kept.key, signal));
      } catch (problem) {
        confirm();
        show(null);
        throw problem;
      }
    };
    return {
      answer,
      askAgain,
      ask: (question) => {
        const kept = { ...question, key: newKey() };
        keepUnsent(kept);
        return askAgain(kept);
      },
      again: async (conversation, message) => {
        const running = now.current;
        if (running?.turnId && running.conversationId && !isOver(running)) await cancelTurn(running.conversationId, running.turnId);
        show({ ...NO_ANSWER, conversationId: conversation });
        const key = newKey();
        await listen((signal) => openAgain(conversation, message, key, signal)).catch((problem: unknown) => {
          show(null);
          throw problem;
        });
      },
      follow: async (conversation, turn) => {
        show({ ...NO_ANSWER, conversationId: conversation, turnId: turn });
        await listen((signal) => openTurn(conversation, turn, 0, signal)).catch(() => show(null));
      },
      stop: () => {
        const running = now.current;
        if (running?.turnId && running.conversationId) {
          void cancelTurn(running.conversationId, running.turnId);
          return null;
        }
        const taken = unsent.current;
        listening.current?.abort();
        confirm();
        show(null);
        return taken;
      },
      clear: () => {
        listening.current?.abort();
        unsent.current = null; // it stays in this browser, and goes on when its conversation is opened again
        show(null);
      },
    };
  }, [answer, confirm, listen, show]);
}

/** Do it, and give up when nothing was heard for too long: of a connection that a sleeping laptop has lost, nobody tells. */
async function unlessSilent(signal: AbortSignal, work: (signal: AbortSignal, hear: () => void) => Promise<void>): Promise<void> {
  const attempt = new AbortController();
  const end = () => attempt.abort();
  let heardAt = Date.now();
  const look = () => Date.now() - heardAt > SILENCE_MILLISECONDS && attempt.abort();
  const timer = setInterval(look, LOOK_MILLISECONDS);
  signal.addEventListener("abort", end);
  addEventListener("online", end); // the old connection went over another network
  try {
    await work(attempt.signal, () => {
      heardAt = Date.now();
    });
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", end);
    removeEventListener("online", end);
  }
}

function eventFrom(kind: string, id: string | null, data: string): TurnEvent | null {
  try {
    const body = JSON.parse(data) as Record<string, unknown>;
    return { kind, number: Number(id ?? body["number"]), ...body } as unknown as TurnEvent;
  } catch {
    return null;
  }
}

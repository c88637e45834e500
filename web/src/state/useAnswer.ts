/** Asking and listening: one stream per answer; when it breaks, the rest is asked for until the turn has ended. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";

import { cancelTurn, openAgain, openChat, openTurn, type Question } from "../api/chat";
import { renew } from "../api/queries";
import { eventsOf } from "../lib/sse";
import { isOver, NO_ANSWER, step, type Answer, type TurnEvent } from "./answer";

export interface Asking {
  readonly answer: Answer | null;
  readonly isConnected: boolean;
  readonly ask: (question: Question) => Promise<void>;
  /** Listen to a turn that runs already, as after a reload. */
  readonly follow: (conversation: string, turn: string) => Promise<void>;
  /** Answer a message again; with null, answer the newest question. */
  readonly again: (conversation: string, message: string | null) => Promise<void>;
  readonly stop: () => void;
  readonly clear: () => void;
}

const PAUSES = [300, 1000, 2000, 5000];

export function useAnswer(onConversation: (id: string) => void): Asking {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [isConnected, setConnected] = useState(true);
  const now = useRef<Answer | null>(null);
  const listening = useRef<AbortController | null>(null);
  const cache = useQueryClient();

  const show = useCallback((next: Answer | null) => {
    now.current = next;
    setAnswer(next);
  }, []);

  const take = useCallback(
    async (response: Response) => {
      if (response.body === null) return;
      for await (const event of eventsOf(response.body)) {
        if (now.current === null) return;
        const told = eventFrom(event.event, event.id, event.data);
        if (told === null) continue;
        const next = step(now.current, told);
        if (told.kind === "accepted") onConversation(told.conversation_id);
        show(next);
      }
    },
    [onConversation, show],
  );

  const listen = useCallback(
    async (first: (signal: AbortSignal) => Promise<Response>) => {
      listening.current?.abort();
      const control = (listening.current = new AbortController());
      let response: Response | null = await first(control.signal);
      for (let failures = 0; now.current !== null && !control.signal.aborted; ) {
        const before: number = now.current.last;
        try {
          response ??= await openTurn(now.current.conversationId!, now.current.turnId!, now.current.last, control.signal);
          setConnected(true);
          await take(response);
        } catch {
          if (control.signal.aborted) return;
        }
        response = null;
        if (now.current === null || isOver(now.current) || now.current.turnId === null) break;
        failures = now.current.last > before ? 0 : failures + 1;
        setConnected(false);
        await new Promise((wake) => setTimeout(wake, PAUSES[Math.min(failures, PAUSES.length - 1)]));
      }
      setConnected(true);
      await renew(cache);
      if (now.current?.state === "complete") show(null);
    },
    [cache, show, take],
  );

  useEffect(() => () => listening.current?.abort(), []);

  return {
    answer,
    isConnected,
    ask: async (question) => {
      show(NO_ANSWER);
      try {
        await listen((signal) => openChat(question, signal));
      } catch (problem) {
        show(null);
        throw problem;
      }
    },
    again: async (conversation, message) => {
      show(NO_ANSWER);
      await listen((signal) => openAgain(conversation, message, signal)).catch((problem: unknown) => {
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
      if (running?.turnId && running.conversationId) void cancelTurn(running.conversationId, running.turnId);
    },
    clear: () => {
      listening.current?.abort();
      show(null);
    },
  };
}

function eventFrom(kind: string, id: string | null, data: string): TurnEvent | null {
  try {
    const body = JSON.parse(data) as Record<string, unknown>;
    return { kind, number: Number(id ?? body["number"]), ...body } as unknown as TurnEvent;
  } catch {
    return null;
  }
}

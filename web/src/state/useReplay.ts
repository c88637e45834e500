/** `Watch it happen`: the service writes a conversation while one watches, and says what it does; what is shown follows. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";

import { call, open } from "../api/http";
import { eventsOf } from "../lib/sse";
import { replayFrom, type Replay } from "../lib/replay";
import { setWatched } from "./watched";

/** How long an answer is left to be read before one is led to what it was recalled from. */
const READING_MILLISECONDS = 3600;

interface Moves {
  readonly onBegun: (conversation: string) => void;
  /** To a message; to the newest with null. */
  readonly onJump: (seq: number | null) => void;
  readonly onProblem: (problem: unknown) => void;
}

export function useReplay({ onBegun, onJump, onProblem }: Moves) {
  const cache = useQueryClient();
  const [replay, setReplay] = useState<Replay | null>(null);
  const running = useRef<AbortController | null>(null);
  const earlier = useRef<string | null>(null);
  const moves = useRef({ onBegun, onJump, onProblem });
  useEffect(() => {
    moves.current = { onBegun, onJump, onProblem };
  });

  const end = useCallback(() => {
    running.current?.abort();
    running.current = null;
    setWatched(null);
    setReplay(null);
  }, []);
  useEffect(() => end, [end]);

  const begin = useCallback(async () => {
    end();
    const control = new AbortController();
    running.current = control;
    let now: Replay | null = null;
    let isElsewhere = false;
    try {
      const response = await open("post", "/demo/replay", { signal: control.signal });
      for await (const event of eventsOf(response.body!)) {
        now = replayFrom(event, now);
        if (now === null) continue;
        setReplay(now);
        if (now.kind === "begun") {
          setWatched(now.conversation);
          if (earlier.current !== null) await call("delete", "/conversations/{conversation_id}", { at: { conversation_id: earlier.current } }); // the list has it once
          earlier.current = now.conversation;
          moves.current.onBegun(now.conversation);
        }
        void cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes(now!.conversation) || queryKey[0] === "conversations" });
        if (now.kind === "compacted") moves.current.onJump(now.lastSeq);
        else if (isElsewhere) moves.current.onJump(null);
        isElsewhere = now.kind === "compacted";
        const source = now.recalled[0];
        if (now.kind === "answered" && source !== undefined) setTimeout(() => running.current === control && moves.current.onJump(source), READING_MILLISECONDS);
      }
    } catch (problem) {
      if (control.signal.aborted) return;
      end();
      moves.current.onProblem(problem);
    }
  }, [cache, end]);
  return { replay, begin, end };
}

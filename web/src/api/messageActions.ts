/** What can be done with one message. */

import { useMemo } from "react";

import type { MessageActions } from "../components/history/MessageRow";
import type { Message } from "../lib/model";
import type { Asking } from "../state/useAnswer";
import { ask, askJson, path } from "./http";
import { useChange } from "./queries";

interface Told {
  readonly onEditing: (id: string | null) => void;
  readonly onFork: (conversation: string) => void;
  readonly onProblem: (problem: unknown) => void;
}

export function useMessageActions(conversation: string | null, asking: Asking, told: Told): MessageActions {
  const change = useChange((run: () => Promise<void>) => run());
  return useMemo(() => {
    const id = conversation ?? "";
    const run = (work: () => Promise<void>) => change.mutate(work, { onError: told.onProblem });
    const at = (message: Message) => path`/conversations/${id}/messages/${message.id}`;
    return {
      edit: (message, text) => {
        told.onEditing(null);
        run(async () => {
          await askJson(at(message), { method: "PATCH", body: { content: text } });
          await asking.again(id, null);
        });
      },
      regenerate: (message) => void asking.again(id, message.id).catch(told.onProblem),
      fork: (message) =>
        run(async () => {
          await askJson(path`/conversations/${id}/fork`, { method: "POST", body: { at_seq: message.seq, activate: true } });
          told.onFork(id);
        }),
      pin: (message) => run(async () => void (await ask(`${at(message)}/pin`, { method: message.isPinned ? "DELETE" : "PUT" }))),
      remove: (message) =>
        run(async () => {
          if (message.isDeleted) await ask(`${at(message)}/restore`, { method: "POST" });
          else await ask(at(message), { method: "DELETE" });
        }),
      switchTo: ({ branch }) => run(async () => void (await ask(path`/conversations/${id}/branches/${branch}/active`, { method: "PUT" }))),
    };
  }, [conversation, asking, change, told]);
}

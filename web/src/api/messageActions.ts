/** What can be done with one message. */

import { useMemo } from "react";

import type { MessageActions } from "../components/history/MessageRow";
import type { Feedback } from "../lib/conversations";
import type { Message } from "../lib/model";
import type { Asking } from "../state/useAnswer";
import { call } from "./http";
import { useChange, useGiveFeedback } from "./queries";

interface Told {
  readonly onEditing: (id: string | null) => void;
  /** A new branch begins after a message, in place of the former one. */
  readonly onFork: (message: Message, former: string | null) => void;
  /** Another branch is shown, in place of the former one. */
  readonly onBranch: (former: string | null) => void;
  readonly onErase: (message: Message) => void;
  readonly onWhy: (message: Message) => void;
  readonly onBad: (message: Message, before: Feedback | null) => void;
  readonly onTrust: (message: Message) => void;
  readonly onProblem: (problem: unknown) => void;
}

export function useMessageActions(conversation: string | null, asking: Asking, told: Told): MessageActions {
  const change = useChange((run: () => Promise<void>) => run());
  const give = useGiveFeedback();
  return useMemo(() => {
    const id = conversation ?? "";
    const run = (work: () => Promise<void>) => change.mutate(work, { onError: told.onProblem });
    const here = { conversation_id: id };
    const at = (message: Message) => ({ ...here, message_id: message.id });
    return {
      edit: (message, text) => {
        told.onEditing(null);
        const work = () => call("patch", "/conversations/{conversation_id}/messages/{message_id}", { at: at(message), body: { content: text, activate: true } }).then(() => undefined);
        change.mutate(work, { onSuccess: () => void asking.again(id, null).catch(told.onProblem), onError: told.onProblem });
      },
      regenerate: (message) => void asking.again(id, message.id).catch(told.onProblem),
      fork: (message) =>
        run(async () => {
          const former = await activeBranch(id);
          await call("post", "/conversations/{conversation_id}/fork", { at: here, body: { at_seq: message.seq, activate: true } });
          told.onFork(message, former);
        }),
      pin: (message) =>
        run(async () => {
          if (message.isPinned) await call("delete", "/conversations/{conversation_id}/messages/{message_id}/pin", { at: at(message) });
          else await call("put", "/conversations/{conversation_id}/messages/{message_id}/pin", { at: at(message) });
        }),
      remove: (message) =>
        run(async () => {
          if (message.isDeleted) await call("post", "/conversations/{conversation_id}/messages/{message_id}/restore", { at: at(message) });
          else await call("delete", "/conversations/{conversation_id}/messages/{message_id}", { at: at(message) });
        }),
      erase: told.onErase,
      why: told.onWhy,
      trust: told.onTrust,
      rate: (message, rating, before) => {
        if (rating === "bad" && before?.rating !== "bad") told.onBad(message, before);
        else give.mutate({ id, message: message.id, feedback: before?.rating === rating ? null : { rating, reason: null } }, { onError: told.onProblem });
      },
      switchTo: (branch) => run(() => activate(id, branch)),
      show: (branch) =>
        run(async () => {
          const former = await activeBranch(id);
          await activate(id, branch);
          told.onBranch(former);
        }),
    };
  }, [conversation, asking, change, give, told]);
}

async function activate(id: string, branch: string): Promise<void> {
  await call("put", "/conversations/{conversation_id}/branches/{branch_id}/active", { at: { conversation_id: id, branch_id: branch } });
}

async function activeBranch(id: string): Promise<string | null> {
  const { items } = await call("get", "/conversations/{conversation_id}/branches", { at: { conversation_id: id } });
  return items.find((branch) => branch.is_active)?.id ?? null;
}

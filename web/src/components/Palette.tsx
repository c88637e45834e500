/** Ctrl-K: go to a conversation or do something, by typing. */

import { useState } from "react";

import { useConversations } from "../api/queries";
import { firstLine } from "../lib/format";
import { useTexts } from "../texts";
import { Box } from "./Bits";

interface Props {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onOpen: (conversation: string) => void;
  readonly onNew: () => void;
  readonly onView: (view: "history" | "model") => void;
  readonly onHelp: () => void;
}

export function Palette(props: Props) {
  const { t } = useTexts();
  const [typed, setTyped] = useState("");
  const conversations = useConversations();
  const choices: { label: string; run: () => void }[] = [
    { label: t.newConversation, run: props.onNew },
    { label: t.history, run: () => props.onView("history") },
    { label: t.modelView, run: () => props.onView("model") },
    { label: t.help, run: props.onHelp },
    ...(conversations.data?.pages.flatMap((page) => page.items) ?? []).map((one) => ({
      label: firstLine(one.title ?? "") || one.id,
      run: () => props.onOpen(one.id),
    })),
  ];
  const wanted = typed.trim().toLowerCase();
  const found = choices.filter((choice) => choice.label.toLowerCase().includes(wanted)).slice(0, 12);
  const run = (choice: { run: () => void } | undefined) => {
    props.onClose();
    setTyped("");
    choice?.run();
  };
  return (
    <Box title={t.palette} open={props.open} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(found[0]);
        }}
      >
        <input autoFocus value={typed} aria-label={t.palette} onChange={(event) => setTyped(event.target.value)} />
      </form>
      <ul className="list">
        {found.map((choice, index) => (
          <li key={index}><button className="conversation" onClick={() => run(choice)}>{choice.label}</button></li>
        ))}
      </ul>
    </Box>
  );
}

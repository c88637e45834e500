/** Ctrl-K: go to a conversation or do something, by typing; the arrow keys choose. */

import { useEffect, useRef, useState } from "react";

import { useConversations } from "../api/queries";
import { firstLine } from "../lib/format";
import { isComposing } from "../state/keys";
import { useTexts } from "../texts";
import { Box } from "./Bits";
import { Icon, type IconName } from "./Icon";

export interface Choice {
  readonly label: string;
  readonly icon: IconName;
  /** The keys that do the same. */
  readonly keys?: string;
  readonly run: () => void;
}

interface Props {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onOpen: (conversation: string) => void;
  /** What can be done besides going somewhere. */
  readonly commands: readonly Choice[];
}

const MOST = 12;

export function Palette({ open, onClose, ...rest }: Props) {
  const { t } = useTexts();
  return (
    <Box title={t.palette} open={open} onClose={onClose}>
      <Choices {...rest} onClose={onClose} />
    </Box>
  );
}

function Choices({ commands, onOpen, onClose }: Omit<Props, "open">) {
  const { t } = useTexts();
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const conversations = useConversations();
  const known = (conversations.data?.pages.flatMap((page) => page.items) ?? []).map((one): Choice => ({ icon: "chat", label: firstLine(one.title ?? "") || one.id, run: () => onOpen(one.id) }));
  const wanted = typed.trim().toLowerCase();
  const found = [...commands, ...known].filter((choice) => choice.label.toLowerCase().includes(wanted)).slice(0, MOST);
  const at = Math.min(chosen, Math.max(0, found.length - 1));
  useEffect(() => {
    void list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const run = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    onClose();
    choice.run();
  };
  const hear = (event: React.KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || found.length === 0 || isComposing(event.nativeEvent)) return;
    event.preventDefault();
    setChosen((at + step + found.length) % found.length);
  };
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(found[at]);
        }}
      >
        <input
          autoFocus
          value={typed}
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-choices"
          aria-activedescendant={found.length > 0 ? `palette-${at}` : undefined}
          aria-label={t.palette}
          placeholder={t.paletteHint}
          onKeyDown={hear}
          onChange={(event) => {
            setTyped(event.target.value);
            setChosen(0);
          }}
        />
      </form>
      <ul className="list" id="palette-choices" role="listbox" aria-label={t.palette} ref={list} style={{ marginTop: "0.6rem" }}>
        {found.map((choice, index) => (
          <li key={index} id={`palette-${index}`} role="option" aria-selected={index === at} className="conversation" aria-current={index === at} onClick={() => run(choice)} onPointerMove={() => setChosen(index)} style={{ cursor: "pointer", borderRadius: 8 }}>
            <Icon name={choice.icon} />
            <span className="title" dir="auto">{choice.label}</span>
            {choice.keys && <kbd>{choice.keys}</kbd>}
            {index === at && <kbd aria-hidden="true">↵</kbd>}
          </li>
        ))}
        {found.length === 0 && <li className="faint">{t.noHits}</li>}
      </ul>
    </>
  );
}

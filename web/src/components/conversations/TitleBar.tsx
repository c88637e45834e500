/** Over the history: the title, which view is shown, and what can be done with the whole conversation. */

import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";

import { download, type Wanted } from "../../api/actions";
import { useTexts } from "../../texts";
import { Icon, IconButton } from "../Icon";

interface Props {
  readonly conversation: string;
  readonly title: string;
  readonly view: "history" | "model";
  readonly onView: (view: "history" | "model") => void;
  /** To a message; to the newest with null. */
  readonly onJump: (seq: number | null) => void;
  readonly onRename: (title: string) => void;
  readonly onRemove: () => void;
  readonly onProblem: (problem: unknown) => void;
}

const FORMATS = ["md", "html", "pdf", "json", "archive"] as const;

export function TitleBar(props: Props) {
  const { t } = useTexts();
  const [isNaming, setNaming] = useState(false);
  return (
    <header className="top">
      {isNaming ? (
        <form
          className="grow"
          onSubmit={(event) => {
            event.preventDefault();
            props.onRename(String(new FormData(event.currentTarget).get("title") ?? ""));
            setNaming(false);
          }}
        >
          <input name="title" autoFocus defaultValue={props.title} aria-label={t.rename} maxLength={200} onBlur={() => setNaming(false)} />
        </form>
      ) : (
        <h1 className="grow" onDoubleClick={() => setNaming(true)}>{props.title || t.untitled}</h1>
      )}
      {props.view === "history" && (
        <div className="jumps">
          <IconButton icon="up" label={t.toFirst} onClick={() => props.onJump(1)} />
          <IconButton icon="down" label={t.toNewest} onClick={() => props.onJump(null)} />
        </div>
      )}
      <div className="switch" role="tablist" aria-label={t.history}>
        {(["history", "model"] as const).map((view) => (
          <button key={view} role="tab" aria-selected={props.view === view} onClick={() => props.onView(view)}>
            {view === "history" ? t.history : t.modelView}
          </button>
        ))}
      </div>
      <More {...props} onNaming={() => setNaming(true)} />
    </header>
  );
}

function More({ conversation, onNaming, onRemove, onProblem }: Props & { readonly onNaming: () => void }) {
  const { t } = useTexts();
  const [wanted, setWanted] = useState<Wanted>({ thinking: true, tools: true });
  return (
    <Menu.Root>
      <Menu.Trigger aria-label={t.more} title={t.more}><Icon name="more" /></Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="end" sideOffset={4}>
          <Menu.Item onSelect={() => setTimeout(onNaming)}>{t.rename}</Menu.Item>
          <Menu.Separator className="line" />
          <Menu.Label className="faint">{t.export}</Menu.Label>
          {(["thinking", "tools"] as const).map((part) => (
            <Menu.CheckboxItem
              key={part}
              checked={wanted[part]}
              onCheckedChange={(isWanted) => setWanted({ ...wanted, [part]: isWanted })}
              onSelect={(event) => event.preventDefault()}
            >
              <span aria-hidden="true">{wanted[part] ? "☑" : "☐"}</span> {part === "thinking" ? t.withThinking : t.withTools}
            </Menu.CheckboxItem>
          ))}
          {FORMATS.map((format) => (
            <Menu.Item key={format} onSelect={() => void download(conversation, format, wanted).catch(onProblem)}>
              {t.exportAs(t.formats[format])}
            </Menu.Item>
          ))}
          <Menu.Separator className="line" />
          <Menu.Item className="bad" onSelect={onRemove}>{t.remove}</Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

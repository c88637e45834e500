/** Over the history: the title, which view is shown, and what can be done with the whole conversation. */

import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";

import { useFirstSaidAt } from "../../api/queries";
import type { Listed } from "../../lib/conversations";
import { count, day } from "../../lib/format";
import { useTexts } from "../../texts";
import { Icon, IconButton } from "../Icon";

interface Props {
  readonly conversation: Listed | null;
  /** What it is called until it has a title. */
  readonly working: string;
  readonly branches: number;
  /** What verifying it has found. */
  readonly proof: { readonly isIntact: boolean; readonly text: string } | null;
  readonly view: "history" | "model";
  readonly isContextShown: boolean;
  readonly onView: (view: "history" | "model") => void;
  readonly onContext: () => void;
  /** To a message; to the newest with null. */
  readonly onJump: (seq: number | null) => void;
  readonly onRename: (title: string) => void;
  readonly onPin: () => void;
  readonly onArrange: () => void;
  readonly onBranches: () => void;
  readonly onVerify: () => void;
  readonly onShare: () => void;
  readonly onExport: () => void;
  readonly onRemove: () => void;
  readonly onErase: () => void;
}

export function TitleBar(props: Props) {
  const { t, language } = useTexts();
  const { conversation } = props;
  const began = useFirstSaidAt(conversation?.id ?? null);
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
          <input name="title" autoFocus defaultValue={conversation?.title ?? ""} aria-label={t.rename} maxLength={200} onBlur={() => setNaming(false)} />
        </form>
      ) : (
        <div className="named">
          <h1 dir="auto" onDoubleClick={() => setNaming(true)} title={conversation?.title ?? ""}>{conversation?.title || props.working || t.untitled}</h1>
          {conversation !== null && (
            <p className="faint number">
              {t.messages(count(conversation.messages, language))}
              {props.branches > 1 && <> · <button className="link" onClick={props.onBranches}>{t.branchesOf(count(props.branches, language))}</button></>}
              {began !== null && <span className="wide-words"> · {t.since(day(began, language))}</span>}
              {conversation.isDeleted && ` · ${t.deleted}`}
              {conversation.isOffRecord && ` · ${t.offRecordTag}`}
              {conversation.isShared && ` · ${t.sharedTag}`}
              {conversation.folder !== "" && ` · ${conversation.folder}`}
              {conversation.tags.map((tag) => ` · #${tag}`)}
              {props.proof !== null && <span className={props.proof.isIntact ? "good" : "bad"}> · {props.proof.text}</span>}
            </p>
          )}
        </div>
      )}
      <div className="switch" role="tablist" aria-label={t.history}>
        {(["history", "model"] as const).map((view) => (
          <button key={view} role="tab" aria-label={view === "history" ? t.history : t.modelView} aria-selected={props.view === view} onClick={() => props.onView(view)}>
            {view === "history" ? t.history : <><span className="wide-words">{t.modelView}</span><span className="narrow-only" aria-hidden="true">{t.modelViewBrief}</span></>}
          </button>
        ))}
      </div>
      <span className="row tight whole wide-only"><IconButton icon="context" label={props.isContextShown ? t.hideContext : t.showContext} onClick={props.onContext} /></span>
      {conversation !== null && <More {...props} onNaming={() => setNaming(true)} />}
    </header>
  );
}

function More({ conversation, branches, onNaming, onPin, onArrange, onBranches, onJump, onVerify, onShare, onExport, onRemove, onErase }: Props & { readonly onNaming: () => void }) {
  const { t } = useTexts();
  return (
    <Menu.Root>
      <Menu.Trigger className="plain" aria-label={t.more} title={t.more}><Icon name="more" /></Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="end" sideOffset={4}>
          <Menu.Item onSelect={() => setTimeout(onNaming)}><Icon name="edit" />{t.rename}</Menu.Item>
          <Menu.Item onSelect={onPin}><Icon name="pin" />{conversation?.isPinned ? t.unpinConversation : t.pinConversation}</Menu.Item>
          <Menu.Item onSelect={onArrange}><Icon name="folder" />{t.arrange} …</Menu.Item>
          {branches > 1 && <Menu.Item onSelect={onBranches}><Icon name="branch" />{t.branches} …</Menu.Item>}
          <Menu.Separator className="line" />
          <Menu.Item onSelect={() => onJump(1)}><Icon name="up" />{t.toFirst}</Menu.Item>
          <Menu.Item onSelect={() => onJump(null)}><Icon name="down" />{t.toNewest}</Menu.Item>
          <Menu.Separator className="line" />
          <Menu.Item onSelect={onVerify}><Icon name="shield" />{t.verify}</Menu.Item>
          {conversation?.isOffRecord === false && <Menu.Item onSelect={onShare}><Icon name="link" />{t.share} …</Menu.Item>}
          <Menu.Item onSelect={onExport}><Icon name="save" />{t.export} …</Menu.Item>
          <Menu.Separator className="line" />
          <Menu.Item onSelect={onRemove}><Icon name="remove" />{t.remove}</Menu.Item>
          <Menu.Item className="bad" onSelect={onErase}><Icon name="close" />{t.erase} …</Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

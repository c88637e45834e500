/** The left column: all conversations, subagents under their parent, and the search over everything said. */

import { useRef, useState } from "react";

import { useConversations, useImport } from "../../api/queries";
import { firstLine } from "../../lib/format";
import { underParents, type Nested } from "../../lib/tree";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";
import { IconButton } from "../Icon";
import { SearchBox } from "./SearchBox";

interface Props {
  readonly current: string | null;
  readonly running: string | null;
  readonly onOpen: (conversation: string, at?: number) => void;
  readonly onNew: () => void;
  readonly searchRef: React.RefObject<HTMLInputElement | null>;
}

export function Conversations({ current, running, onOpen, onNew, searchRef }: Props) {
  const { t } = useTexts();
  const list = useConversations();
  const all = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <div className="row">
        <h2 className="grow" style={{ margin: 0 }}>{t.conversations}</h2>
        <IconButton icon="plus" label={t.newConversation} onClick={onNew} />
      </div>
      <SearchBox inputRef={searchRef} onOpen={onOpen} />
      {list.isError && <Trouble problem={list.error} onRetry={() => void list.refetch()} />}
      {list.data && all.length === 0 && <p className="faint">{t.noConversations}</p>}
      <Branch nodes={underParents(all)} current={current} running={running} onOpen={onOpen} />
      {list.hasNextPage && <button onClick={() => void list.fetchNextPage()}>{t.loadMore}</button>}
      <ImportButton onOpen={onOpen} />
    </>
  );
}

interface BranchProps extends Pick<Props, "current" | "running" | "onOpen"> {
  readonly nodes: readonly Nested[];
}

function Branch({ nodes, ...rest }: BranchProps) {
  const { t } = useTexts();
  if (nodes.length === 0) return null;
  return (
    <ul className="conversations">
      {nodes.map(({ conversation, children }) => (
        <li key={conversation.id}>
          <button className="conversation" aria-current={rest.current === conversation.id} onClick={() => rest.onOpen(conversation.id)}>
            <span className="title">{firstLine(conversation.title ?? "") || t.untitled}</span>
            {rest.running === conversation.id && <span className="dot" role="img" aria-label={t.running} />}
            <span className="faint" title={t.messages(String(conversation.count))}>{conversation.count}</span>
          </button>
          <Branch nodes={children} {...rest} />
        </li>
      ))}
    </ul>
  );
}

function ImportButton({ onOpen }: { readonly onOpen: (conversation: string) => void }) {
  const { t } = useTexts();
  const toast = useToast();
  const input = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const bring = useImport();
  const take = async (file: File) => {
    try {
      const ids = await bring.mutateAsync(file);
      setProblem(null);
      toast({ text: t.imported(ids.length) });
      if (ids[0] !== undefined) onOpen(ids[0]);
    } catch (refused) {
      setProblem(refused);
    }
  };
  return (
    <>
      <button className="plain" disabled={bring.isPending} onClick={() => input.current?.click()}>⇪ {t.import}</button>
      <input
        ref={input}
        type="file"
        hidden
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) void take(file);
          event.target.value = "";
        }}
      />
      {problem !== null && <Trouble problem={problem} />}
    </>
  );
}

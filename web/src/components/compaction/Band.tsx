/** A compaction between the messages it summarises and those after them: opens to summary, originals and what was lost. */

import { useState } from "react";

import { useDiff, useUndo } from "../../api/queries";
import { count, seconds } from "../../lib/format";
import type { Compaction } from "../../lib/model";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";
import { Said } from "../Said";
import { marked } from "./marked";

export function Band({ conversation, compaction }: { readonly conversation: string; readonly compaction: Compaction }) {
  const { t, language } = useTexts();
  const [isOpen, setOpen] = useState(false);
  const toast = useToast();
  const undo = useUndo(conversation);
  const title = t.band(count(compaction.lastSeq - compaction.firstSeq + 1, language), count(compaction.tokensBefore, language), count(compaction.tokensAfter, language));
  const figures = [
    `#${compaction.firstSeq}–${compaction.lastSeq}`,
    compaction.trigger === "manual" ? t.manual : t.automatic,
    t.level(compaction.level),
    t.facts(compaction.factsKept, compaction.factsTotal),
    seconds(compaction.seconds, language),
  ];
  return (
    <section className="band" data-compaction={compaction.id} aria-label={title}>
      <button className="plain fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <strong>{title}</strong>
        <span className="faint">{figures.join(" · ")}</span>
      </button>
      {isOpen && (
        <>
          <Sides conversation={conversation} compaction={compaction} />
          <button onClick={() => undo.mutate(compaction.id, { onSuccess: () => toast({ text: t.undone }) })} disabled={undo.isPending}>{t.undoCompaction}</button>
          {undo.isError && <Trouble problem={undo.error} />}
        </>
      )}
    </section>
  );
}

function Sides({ conversation, compaction }: { readonly conversation: string; readonly compaction: Compaction }) {
  const { t } = useTexts();
  const diff = useDiff(conversation, compaction);
  const lost = diff.data?.lost ?? [];
  return (
    <div className="sides">
      <div tabIndex={0}>
        <h3>{t.summary}</h3>
        <Said text={compaction.summary} />
      </div>
      <div tabIndex={0}>
        <h3>{t.originals}</h3>
        {diff.isError && <Trouble problem={diff.error} />}
        {lost.length > 0 && (
          <p className="faint">
            {t.onlyInOriginals}: {lost.map((fact) => <mark key={fact}>{fact}</mark>).flatMap((fact, at) => (at > 0 ? [" ", fact] : [fact]))}
          </p>
        )}
        {diff.data?.originals.map((original) => (
          <p key={original.seq} style={{ whiteSpace: "pre-wrap" }}>
            <span className="faint">#{original.seq} {t.roles[original.role] ?? original.role} </span>
            {original.text === "" && <span className="faint">{t.noWords}</span>}
            {marked(original.text, lost).map((piece, at) => (piece.isMarked ? <mark key={at}>{piece.text}</mark> : piece.text))}
          </p>
        ))}
      </div>
    </div>
  );
}

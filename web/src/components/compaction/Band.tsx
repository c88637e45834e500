/** A compaction between the messages it summarizes and those after them: opens to summary, originals and what was lost. */

import { useEffect, useState } from "react";

import { useDiff, useUndo } from "../../api/queries";
import { agentName } from "../../lib/agents";
import { count, firstLine, seconds } from "../../lib/format";
import type { Compaction } from "../../lib/model";
import { useTexts } from "../../texts";
import { Trouble, useToast, Waiting } from "../Bits";
import { Icon } from "../Icon";
import { Said } from "../Said";
import { marked } from "./marked";

interface Props {
  readonly conversation: string;
  readonly compaction: Compaction;
  readonly onJump: (seq: number) => void;
}

export function Band({ conversation, compaction, jumps, onJump }: Props & { /** How often one jumped here: it opens. */ readonly jumps: number }) {
  const { t, language } = useTexts();
  const [isOpen, setOpen] = useState(jumps > 0);
  useEffect(() => {
    if (jumps > 0) setOpen(true);
  }, [jumps]);
  const toast = useToast();
  const undo = useUndo(conversation);
  const undoIt = () => undo.mutateAsync(compaction.id).then(() => toast({ text: t.undone }), () => undefined); // the band is gone by then
  const [first, last] = [count(compaction.firstSeq, language), count(compaction.lastSeq, language)];
  const { madeBy } = compaction;
  const title = madeBy === null ? t.band(first, last) : t.ownSummary(first, last, agentName(madeBy));
  const more = [compaction.trigger === "manual" ? t.manual : t.automatic, t.level(compaction.level), seconds(compaction.seconds, language)];
  return (
    <section className="band" data-compaction={compaction.id} data-target={jumps > 0} aria-label={title}>
      <div>
        <div className="head">
          <Icon name="layers" />
          <strong>{title}</strong>
          <button className="open" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{isOpen ? t.close : t.openSummary}</button>
        </div>
        <div className="row tight">
          <span className="tag number">{t.fromTo(count(compaction.tokensBefore, language), count(compaction.tokensAfter, language))}</span>
          {madeBy === null && <span className="tag">{t.facts(compaction.factsKept, compaction.factsTotal)}</span>}
        </div>
        {!isOpen && <p className="faint" style={{ margin: 0 }}>{firstLine(plainly(compaction.summary), 150)}</p>}
        {isOpen && (
          <>
            <Sides conversation={conversation} compaction={compaction} onJump={onJump} />
            {madeBy === null && <div className="row">
              <button onClick={undoIt} disabled={undo.isPending}>{t.undoCompaction}</button>
              <span className="faint">{more.join(" · ")}</span>
            </div>}
            {undo.isError && <Trouble problem={undo.error} />}
          </>
        )}
      </div>
    </section>
  );
}

/** The summary's first words without its heading, its marks and the numbers of its messages. */
function plainly(summary: string): string {
  return summary.replace(/^#+ .*\n+/, "").replace(/^- (?:user: )?/gm, "").replace(/ *\[#?\d+(?:[,–-] *#?\d+)*\]/g, "").replace(/[*#]/g, "");
}

function Sides({ conversation, compaction, onJump }: Props) {
  const { t } = useTexts();
  const diff = useDiff(conversation, compaction);
  const lost = diff.data?.lost ?? [];
  return (
    <div className="sides">
      <div tabIndex={0}>
        <h3>{t.summary}</h3>
        <Said text={compaction.summary} onMessage={onJump} />
      </div>
      <div tabIndex={0}>
        <h3>{t.originals}</h3>
        {diff.isPending && <Waiting lines={6} />}
        {diff.isError && <Trouble problem={diff.error} />}
        {lost.length > 0 && (
          <p className="faint">
            {t.onlyInOriginals}: {lost.map((fact) => <mark key={fact}>{fact}</mark>).flatMap((fact, at) => (at > 0 ? [" ", fact] : [fact]))}
          </p>
        )}
        {diff.data?.originals.map((original) => (
          <p key={original.seq} style={{ whiteSpace: "pre-wrap" }}>
            <button className="link" onClick={() => onJump(original.seq)}>#{original.seq}</button> <span className="faint">{t.roles[original.role] ?? original.role} </span>
            {original.text === "" && <span className="faint">{t.noWords}</span>}
            {marked(original.text, lost).map((piece, at) => (piece.isMarked ? <mark key={at}>{piece.text}</mark> : piece.text))}
          </p>
        ))}
      </div>
    </div>
  );
}

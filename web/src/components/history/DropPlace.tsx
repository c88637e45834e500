/** Takes the files that are dropped anywhere on the conversation. What may hold conversations is imported or attached, as one says. */

import { useState, type DragEvent, type HTMLAttributes } from "react";

import { mayBeImported } from "../../lib/uploads";
import { useTexts } from "../../texts";
import { Box } from "../Bits";

interface Given {
  readonly onAttach: (files: readonly File[]) => void;
  readonly onImport: (file: File) => void;
}

interface Dropping {
  readonly isOver: boolean;
  /** Dropped, and not yet said what is to become of it. */
  readonly undecided: readonly File[];
  readonly decide: (isImport: boolean | null) => void;
  /** For the element that takes them. */
  readonly handlers: Pick<HTMLAttributes<HTMLElement>, "onDragOver" | "onDragLeave" | "onDrop">;
}

export function useDropping({ onAttach, onImport }: Given): Dropping {
  const [isOver, setOver] = useState(false);
  const [undecided, setUndecided] = useState<readonly File[]>([]);
  return {
    isOver,
    undecided,
    decide: (isImport) => {
      setUndecided([]);
      if (isImport === true) undecided.forEach(onImport);
      else if (isImport === false) onAttach(undecided);
    },
    handlers: {
      onDragOver: (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: (event) => {
        if (!(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget))) setOver(false);
      },
      onDrop: (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        const files = [...event.dataTransfer.files];
        const others = files.filter((file) => !mayBeImported(file.name));
        if (others.length > 0) onAttach(others);
        setUndecided(files.filter((file) => mayBeImported(file.name)));
      },
    },
  };
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer.types.includes("Files");
}

export function DropPlace({ isOver, undecided, decide }: Dropping) {
  const { t } = useTexts();
  return (
    <>
      {isOver && <div className="drop-place" aria-hidden="true"><span>{t.dropHere}</span></div>}
      <Box title={t.importOrAttach} open={undecided.length > 0} onClose={() => decide(null)}>
        <p>{t.importOrAttachText(undecided.map((file) => file.name).join(", "))}</p>
        <div className="row ends">
          <button onClick={() => decide(false)}>{t.attachIt}</button>
          <button className="primary" onClick={() => decide(true)}>{t.importIt}</button>
        </div>
      </Box>
    </>
  );
}

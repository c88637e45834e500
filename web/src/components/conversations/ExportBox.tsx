/** Saves a conversation as a file: for people, or for programs. */

import { useState } from "react";

import { download, type Wanted } from "../../api/actions";
import { useTexts } from "../../texts";
import { Box } from "../Bits";

interface Props {
  readonly conversation: string | null;
  readonly onClose: () => void;
  readonly onProblem: (problem: unknown) => void;
}

const FORMATS = ["md", "html", "pdf", "json", "archive"] as const;
/** These may leave parts out; the others are always whole. */
const IN_PART: readonly string[] = ["md", "html", "pdf"];

export function ExportBox({ conversation, onClose, onProblem }: Props) {
  const { t } = useTexts();
  const [format, setFormat] = useState<(typeof FORMATS)[number]>("md");
  const [wanted, setWanted] = useState<Wanted>({ thinking: true, tools: true });
  const isInPart = IN_PART.includes(format);
  return (
    <Box title={t.exportTitle} open={conversation !== null} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (conversation !== null) void download(conversation, format, isInPart ? wanted : undefined).catch(onProblem);
          onClose();
        }}
      >
        <fieldset className="choices">
          <legend className="visually-hidden">{t.export}</legend>
          {FORMATS.map((one) => (
            <label key={one} className="choice">
              <input type="radio" name="format" value={one} checked={format === one} onChange={() => setFormat(one)} />
              <span><b>{t.formats[one]}</b><small className="faint">{t.formatHints[one]}</small></span>
            </label>
          ))}
        </fieldset>
        {(["thinking", "tools"] as const).map((part) => (
          <label key={part} className="check">
            <input type="checkbox" disabled={!isInPart} checked={!isInPart || wanted[part]} onChange={(event) => setWanted({ ...wanted, [part]: event.target.checked })} />
            {part === "thinking" ? t.withThinking : t.withTools}
          </label>
        ))}
        <div className="row ends">
          <button type="button" onClick={onClose}>{t.cancel}</button>
          <button className="primary">{t.export}</button>
        </div>
      </form>
    </Box>
  );
}

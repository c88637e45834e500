/** The files of a message: pictures are shown, the others can be saved. */

import { useEffect, useState } from "react";

import { downloadFile, fetchFile } from "../../api/actions";
import { bytes } from "../../lib/format";
import type { Attached } from "../../lib/uploads";
import { useTexts } from "../../texts";
import { Icon } from "../Icon";

const PICTURES = /^image\/(png|jpeg|gif|webp)$/;

export function Attachments({ conversation, files }: { readonly conversation: string; readonly files: readonly Attached[] }) {
  const { language } = useTexts();
  if (files.length === 0) return null;
  return (
    <div className="chips">
      {files.map((file) =>
        PICTURES.test(file.mime) ? (
          <Picture key={file.path} conversation={conversation} file={file} />
        ) : (
          <button key={file.path} className="chip" onClick={() => void downloadFile(conversation, file.path)}>
            <Icon name="file" />
            <span>{nameOf(file)}</span> <small className="faint">{bytes(file.bytes, language)}</small>
          </button>
        ),
      )}
    </div>
  );
}

export function nameOf(file: { readonly path: string }): string {
  return file.path.split("/").at(-1) ?? file.path;
}

/** Fetched, not linked to, because a key may be needed. */
function Picture({ conversation, file }: { readonly conversation: string; readonly file: Attached }) {
  const [source, setSource] = useState<string | null>(null);
  useEffect(() => {
    let made: string | null = null;
    let isWanted = true;
    void fetchFile(conversation, file.path)
      .then((body) => {
        if (isWanted) setSource((made = URL.createObjectURL(new Blob([body], { type: file.mime }))));
      })
      .catch(() => undefined); // a file that is gone leaves its name
    return () => {
      isWanted = false;
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [conversation, file.path, file.mime]);
  return source === null ? <span className="chip">{nameOf(file)}</span> : <img src={source} alt={nameOf(file)} />;
}

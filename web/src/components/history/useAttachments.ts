/** The files that go with the next message: handed in as soon as they are chosen, shown as chips until the message is sent. */

import { useEffect, useRef, useState } from "react";

import { useUpload } from "../../api/queries";
import { newKey } from "../../lib/random";
import type { Attached } from "../../lib/uploads";
import type { Chip } from "./Composer";

export interface Attachments {
  readonly chips: readonly Chip[];
  readonly ready: readonly Attached[];
  readonly add: (files: readonly File[]) => void;
  readonly drop: (chip: string) => void;
  readonly clear: () => void;
}

/** `onInto` is told the conversation that the files are in: a new one, where there was none. */
export function useAttachments(conversation: string | null, onInto: (conversation: string) => void, onProblem: (problem: unknown) => void): Attachments {
  const [chips, setChips] = useState<readonly Chip[]>([]);
  const upload = useUpload();
  const home = useRef(conversation);
  const made = useRef<string | null>(null);
  useEffect(() => {
    if (conversation !== home.current && conversation !== made.current) setChips([]); // those of another conversation
    home.current = conversation;
  }, [conversation]);
  const change = (key: string, changed: Partial<Chip>) => setChips((now) => now.map((chip) => (chip.key === key ? { ...chip, ...changed } : chip)));
  const add = async (files: readonly File[]) => {
    const fresh = files.map((file) => ({
      file,
      chip: { key: newKey(), name: file.name, size: file.size, state: "uploading", attached: null, picture: file.type.startsWith("image/") ? URL.createObjectURL(file) : null } satisfies Chip,
    }));
    setChips((now) => [...now, ...fresh.map((one) => one.chip)]);
    let into = conversation;
    for (const { file, chip } of fresh) {
      try {
        const done = await upload.mutateAsync({ id: into, files: [file] });
        if (into === null) {
          made.current = done.into;
          onInto(done.into);
        }
        into = done.into;
        change(chip.key, { state: "ready", attached: done.attached[0] ?? null });
      } catch (problem) {
        change(chip.key, { state: "failed" });
        onProblem(problem);
      }
    }
  };
  return {
    chips,
    ready: chips.flatMap((chip) => (chip.attached === null ? [] : [chip.attached])),
    add: (files) => void add(files),
    drop: (key) => setChips((now) => now.filter((chip) => chip.key !== key)),
    clear: () => setChips([]),
  };
}

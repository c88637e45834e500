/** The files that go with the next message: handed in as soon as they are chosen, shown as chips until the message is sent. Before
 * there is a conversation they wait here: it is made when something is sent, not before. */

import { useEffect, useRef, useState } from "react";

import { useUpload } from "../../api/queries";
import { firstLine } from "../../lib/format";
import { newKey } from "../../lib/random";
import type { Attached } from "../../lib/uploads";
import type { Chip } from "./Composer";

export interface Attachments {
  readonly chips: readonly Chip[];
  readonly add: (files: readonly File[]) => void;
  readonly drop: (chip: string) => void;
  readonly clear: () => void;
  /** Hand in what still waits; the conversation that all of them are in, null where there are none and none is open. A new one
   * is called by the words that go with them. */
  readonly handIn: (words: string) => Promise<{ readonly into: string | null; readonly files: readonly Attached[] }>;
}

export function useAttachments(conversation: string | null, onProblem: (problem: unknown) => void): Attachments {
  const [chips, setChips] = useState<readonly Chip[]>([]);
  const upload = useUpload();
  const home = useRef(conversation);
  const made = useRef<string | null>(null);
  const waiting = useRef(new Map<string, File>());
  const clear = () => {
    setChips([]);
    waiting.current.clear();
    made.current = null;
  };
  useEffect(() => {
    if (conversation !== home.current && conversation !== made.current) clear(); // those of another conversation
    home.current = conversation;
  }, [conversation]);
  const change = (key: string, changed: Partial<Chip>) => setChips((now) => now.map((chip) => (chip.key === key ? { ...chip, ...changed } : chip)));
  const handInOne = async (key: string, file: File, into: string | null, words = "") => {
    change(key, { state: "uploading" });
    try {
      const done = await upload.mutateAsync({ id: into, files: [file], title: firstLine(words) || file.name });
      const attached = done.attached[0] ?? null;
      change(key, { state: "ready", attached });
      return { into: done.into, attached };
    } catch (problem) {
      change(key, { state: "failed" });
      throw problem;
    }
  };
  const add = async (files: readonly File[]) => {
    const fresh = files.map((file) => ({
      file,
      chip: { key: newKey(), name: file.name, size: file.size, state: "waiting", attached: null, picture: file.type.startsWith("image/") ? URL.createObjectURL(file) : null } satisfies Chip,
    }));
    setChips((now) => [...now, ...fresh.map((one) => one.chip)]);
    for (const { file, chip } of fresh) {
      if (conversation === null) waiting.current.set(chip.key, file);
      else await handInOne(chip.key, file, conversation).catch(onProblem);
    }
  };
  return {
    chips,
    add: (files) => void add(files),
    drop: (key) => {
      waiting.current.delete(key);
      setChips((now) => now.filter((chip) => chip.key !== key));
    },
    clear,
    handIn: async (words) => {
      const files = chips.flatMap((chip) => (chip.attached === null ? [] : [chip.attached]));
      let into = conversation ?? made.current;
      for (const [key, file] of [...waiting.current]) {
        const done = await handInOne(key, file, into, words);
        made.current = into = done.into;
        waiting.current.delete(key);
        if (done.attached !== null) files.push(done.attached);
      }
      return { into, files };
    },
  };
}

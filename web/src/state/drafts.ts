/** What was typed and not sent yet, kept over a reload. Storage may be closed to us: then a draft lives as long as the page. */

const unkept = new Map<string, string>();
const name = (conversation: string): string => `everthread.draft.${conversation}`;

export function readDraft(conversation: string): string {
  try {
    return localStorage.getItem(name(conversation)) ?? "";
  } catch {
    return unkept.get(conversation) ?? "";
  }
}

export function keepDraft(conversation: string, text: string): void {
  unkept.set(conversation, text);
  try {
    if (text === "") localStorage.removeItem(name(conversation));
    else localStorage.setItem(name(conversation), text);
  } catch {
    // no storage here
  }
}

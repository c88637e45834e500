import { useEffect, useRef } from "react";

import { isComposing, press, type Action } from "./keys";

/** Hear the keyboard of the whole page. */
export function useKeys(act: (action: Action) => void): void {
  const newest = useRef(act);
  useEffect(() => {
    newest.current = act;
  });
  useEffect(() => {
    let waiting = "";
    const hear = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
      if (event.altKey || isComposing(event)) return;
      const heard = press({ key: event.key, isTyping, isWithControl: event.ctrlKey || event.metaKey }, waiting);
      waiting = heard.waiting;
      if (heard.action === null) return;
      if (heard.action !== "close") event.preventDefault();
      newest.current(heard.action);
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, []);
}

/** Small things that several screens use. */

import * as Dialog from "@radix-ui/react-dialog";
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from "react";

import { Problem } from "../api/http";
import { useConnection } from "../state/connection";
import { useTexts } from "../texts";
import type { Texts } from "../texts/en";
import { IconButton } from "./Icon";

interface Toast {
  readonly text: string;
  readonly undo?: () => void;
}

const ToastContext = createContext<(toast: Toast) => void>(() => undefined);

/** Say something in passing, with a way back where there is one. */
export function useToast(): (toast: Toast) => void {
  return useContext(ToastContext);
}

export function Toasts({ children }: { readonly children: ReactNode }) {
  const { t } = useTexts();
  const [toast, setToast] = useState<Toast | null>(null);
  const show = useCallback((next: Toast) => {
    setToast(next);
    setTimeout(() => setToast((now) => (now === next ? null : now)), next.undo ? 8000 : 3500);
  }, []);
  const value = useMemo(() => show, [show]);
  return (
    <ToastContext.Provider value={value}>
      {children}
      <div role="status" aria-live="polite">
        {toast !== null && (
          <div className="toast">
            {toast.text}
            {toast.undo && (
              <button
                onClick={() => {
                  toast.undo?.();
                  setToast(null);
                }}
              >
                {t.undo}
              </button>
            )}
          </div>
        )}
      </div>
    </ToastContext.Provider>
  );
}

interface BoxProps {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly isLarge?: boolean;
  readonly children: ReactNode;
}

/** A dialog over the page; Escape closes it. */
export function Box({ title, open, onClose, isLarge = false, children }: BoxProps) {
  const { t } = useTexts();
  return (
    <Dialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="veil" />
        <Dialog.Content className={isLarge ? "dialog large" : "dialog"} aria-describedby={undefined} onOpenAutoFocus={toItself}>
          <div className="row whole" style={{ marginBottom: "0.7rem" }}>
            <Dialog.Title asChild>
              <h2 className="grow">{title}</h2>
            </Dialog.Title>
            <IconButton icon="close" label={t.close} onClick={onClose} />
          </div>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Where nothing in a dialog asks for the keyboard, it goes to the dialog, not to the button that closes it. */
function toItself(event: Event): void {
  event.preventDefault();
  if (event.currentTarget instanceof HTMLElement) event.currentTarget.focus();
}

/** Where something is still being read: never an empty state that is not true. */
export function Waiting({ lines = 2 }: { readonly lines?: number }) {
  const { t } = useTexts();
  return (
    <div className="waiting" role="status" aria-label={t.loading}>
      {Array.from({ length: lines }, (_, line) => <i key={line} />)}
    </div>
  );
}

interface TroubleProps {
  readonly problem: unknown;
  readonly onRetry?: () => void;
  readonly onClose?: () => void;
}

/** What could not be read, or done. While there is no connection, only what somebody did is told here: the page says the rest
 * once, over the conversation. */
export function Trouble({ problem, onRetry, onClose }: TroubleProps) {
  const { t } = useTexts();
  const isConnected = useConnection();
  if (!isConnected && onClose === undefined) return null;
  const { words, detail } = saidOf(problem, t);
  return (
    <div className="notice problem" role="alert">
      <div className="row">
        <strong>{words}</strong>
        {onRetry && <button onClick={onRetry}>{t.retry}</button>}
        {onClose && <button onClick={onClose}>{t.close}</button>}
      </div>
      <Detail text={detail} />
    </div>
  );
}

/** What the service says of it, which speaks English. */
export function Detail({ text }: { readonly text: string }) {
  return text === "" ? null : <p className="detail" lang="en">{text}</p>;
}

/** A problem in the words of the page, and what the service adds to it. */
export function saidOf(problem: unknown, t: Texts): { readonly words: string; readonly detail: string } {
  if (!(problem instanceof Problem)) return { words: t.somethingWrong, detail: problem instanceof Error ? problem.message : String(problem) };
  const told = inOurWords(problem.code, problem.status === 0 ? "" : problem.message, t);
  return { words: told.words ?? t.somethingWrong, detail: told.detail };
}

const MISSING_KEY = /\bmodel (\S+) needs a key: set ([A-Z][A-Z0-9_]*)/;

/** A code of the service in the words of the page; what the service says is added where those do not say it all. */
export function inOurWords(code: string, message: string, t: Texts): { readonly words: string | undefined; readonly detail: string } {
  const missing = code === "model_key_missing" ? MISSING_KEY.exec(message) : null;
  if (missing !== null) return { words: t.keyMissing(missing[1]!, missing[2]!), detail: "" };
  return { words: t.problems[code], detail: message };
}

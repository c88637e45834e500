/** Small things that several screens use. */

import * as Dialog from "@radix-ui/react-dialog";
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from "react";

import { useTexts } from "../texts";

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
  readonly children: ReactNode;
}

/** A dialog over the page; Escape closes it. */
export function Box({ title, open, onClose, children }: BoxProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="veil" />
        <Dialog.Content className="dialog" aria-describedby={undefined}>
          <Dialog.Title asChild>
            <h2>{title}</h2>
          </Dialog.Title>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface TroubleProps {
  readonly problem: unknown;
  readonly onRetry?: () => void;
  readonly onClose?: () => void;
}

export function Trouble({ problem, onRetry, onClose }: TroubleProps) {
  const { t } = useTexts();
  return (
    <div className="notice problem" role="alert">
      <strong>{t.somethingWrong}</strong> {problem instanceof Error ? problem.message : String(problem)}{" "}
      {onRetry && <button onClick={onRetry}>{t.retry}</button>}
      {onClose && <button onClick={onClose}>{t.close}</button>}
    </div>
  );
}

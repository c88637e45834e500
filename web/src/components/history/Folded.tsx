/** Something one can open. What is inside is drawn when it is opened, not before. */

import { useState, type ReactNode } from "react";

interface Props {
  readonly label: string;
  /** What is inside, in a few words. */
  readonly hint?: string;
  readonly children: ReactNode;
}

export function Folded({ label, hint, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label} {hint && <span className="hint">{hint}</span>}
      </summary>
      {isOpen && children}
    </details>
  );
}

/** Something one can open. What is inside is drawn when it is opened, not before. */

import { useState, type ReactNode } from "react";

export function Folded({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && children}
    </details>
  );
}

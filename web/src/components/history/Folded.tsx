/** Something one can open. What is inside is drawn when it is opened, not before. */

import { useState, type ReactNode } from "react";

import { Icon, type IconName } from "../Icon";

interface Props {
  readonly icon: IconName;
  readonly label: string;
  /** What is inside, in a few words. */
  readonly hint?: string;
  /** How it went. */
  readonly state?: ReactNode;
  readonly children: ReactNode;
}

export function Folded({ icon, label, hint, state, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="fold" data-icon={icon} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name={icon} />
        <b>{label}</b> {hint && <span className="hint">{hint}</span>}
        {state && <span className="state">{state}</span>}
      </summary>
      {isOpen && <div>{children}</div>}
    </details>
  );
}

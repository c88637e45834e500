/** Small pictures for buttons that have no room for words; the words stand in the button's label. */

const PATHS = {
  answer: "M20 11a8 8 0 1 0-2.3 6M20 5v6h-6",
  clip: "M8 12l6-6a3.5 3.5 0 0 1 5 5l-8.5 8.5a5.5 5.5 0 0 1-8-8L10 4",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  down: "M12 4v14M6 12l6 6 6-6M5 21h14",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  fork: "M6 3v18M6 14c8 0 12-3 12-9M14.500 8.500 18 5l3.500 3.500",
  key: "M3 7h18v11H3zM7 11h.1M11 11h.1M15 11h.1M8 15h8",
  left: "M14 6l-6 6 6 6",
  more: "M5 12h.1M12 12h.1M19 12h.1",
  pin: "M9 3h6l-1 7 4 4H6l4-4zM12 14v7",
  plus: "M12 5v14M5 12h14",
  remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  right: "M10 6l6 6-6 6",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  undo: "M9 7 4 12l5 5M4 12h10a6 6 0 0 1 0 12",
  up: "M12 20V6M6 12l6-6 6 6M5 3h14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface Props {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
  readonly disabled?: boolean;
}

export function IconButton({ icon, label, onClick, disabled = false }: Props) {
  return (
    <button type="button" className="plain" aria-label={label} title={label} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** Small pictures for buttons that have no room for words; the words stand in the button's label. */

const PATHS = {
  bad: "M7 4h9l3 8v2h-6l1 5-2 1.5L8 14H7zM7 4H4v10h3",
  folder: "M3 6h6l2 2h10v11H3z",
  good: "M7 20h9l3-8v-2h-6l1-5-2-1.500L8 10H7zM7 20H4V10h3",
  hand: "M5 5l14 14M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  save: "M12 4v11M7 11l5 5 5-5M4 20h16",
  spread: "M6 12h4M14 6l4-2M14 18l4 2M10 12l4-6M10 12l4 6M10 12h9",
  tag: "M4 4h8l8 8-8 8-8-8zM8 8h.1",
  again: "M20 11a8 8 0 1 0-2.3 6M20 5v6h-6",
  answer: "M12 3l1.8 5.2L19 10l-5.2 1.8L12 17l-1.8-5.200L5 10l5.200-1.800zM19 15l.8 2.200L22 18l-2.200.8L19 21l-.8-2.200L16 18l2.200-.8z",
  branch: "M6 3v12M6 15a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 9c0 5-6 4-12 7",
  chat: "M4 5h16v11H9l-5 4z",
  check: "M5 12.500l4.500 4.500L19 7.500",
  chevron: "M7 10l5 5 5-5",
  clip: "M8 12l6-6a3.500 3.500 0 0 1 5 5l-8.500 8.500a5.500 5.500 0 0 1-8-8L10 4",
  close: "M6 6l12 12M18 6L6 18",
  context: "M4 5h16v14H4zM14.500 5v14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  down: "M12 5v13M6 12l6 6 6-6",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  key: "M3 7h18v11H3zM7 11h.1M11 11h.1M15 11h.1M8 15h8",
  layers: "M12 4l8 4.500-8 4.500-8-4.500zM4 13l8 4.500 8-4.500",
  left: "M14 6l-6 6 6 6",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.700-5.700l-1.500 1.500M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.700 5.700l1.500-1.500",
  more: "M5 12h.1M12 12h.1M19 12h.1",
  pin: "M9 3h6l-1 7 4 4H6l4-4zM12 14v7",
  play: "M8 5l11 7-11 7z",
  plus: "M12 5v14M5 12h14",
  remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  right: "M10 6l6 6-6 6",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5",
  send: "M12 19V6M6 12l6-6 6 6",
  shield: "M12 3l7 3v5c0 5-3 8.500-7 10-4-1.500-7-5-7-10V6zM9 12l2.200 2.200L15.500 10",
  stop: "M7 7h10v10H7z",
  system: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v3M12 18v3M3 12h3M18 12h3M5.600 5.600l2.200 2.200M16.200 16.200l2.200 2.200M5.600 18.400l2.200-2.200M16.200 7.800l2.200-2.200",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  thinking: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.500 10.900c.6.500.9 1.200.9 2.100h5.200c0-.9.300-1.600.9-2.100A6 6 0 0 0 12 3z",
  tool: "M14.500 6a4 4 0 0 1 5-3.800l-2.800 2.800 2.300 2.300 2.800-2.800A4 4 0 0 1 17 9.500L8.500 18a2.100 2.100 0 0 1-3-3L14 6.500z",
  undo: "M9 7L4 12l5 5M4 12h10a5 5 0 0 1 0 10",
  up: "M12 19V6M6 12l6-6 6 6M5 3h14",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.500 20.500c1-4 4-5.500 7.500-5.500s6.500 1.500 7.500 5.500",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" data-name={name} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface Props {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
  readonly disabled?: boolean;
  readonly className?: string;
  /** Of a button that stays pressed. */
  readonly isOn?: boolean;
}

export function IconButton({ icon, label, onClick, disabled = false, className = "", isOn }: Props) {
  return (
    <button type="button" className={`plain ${className}`} aria-label={label} aria-pressed={isOn} title={label} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** The mark of everthread. */
export function Wave() {
  return <svg className="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M3 12c3-7 6-7 9 0s6 7 9 0" /></svg>;
}

/** Where the person is, as it stands in the address: #/c/ID, with ?view=model&turn=ID or ?at=SEQ. */

export interface Place {
  readonly conversation: string | null;
  readonly view: "history" | "model";
  readonly turn: string | null;
  /** The message to jump to. */
  readonly at: number | null;
}

export const HOME: Place = { conversation: null, view: "history", turn: null, at: null };

export function placeFrom(hash: string): Place {
  const match = /^#\/c\/([^?]+)(?:\?(.*))?$/.exec(hash);
  if (match === null) return HOME;
  const query = new URLSearchParams(match[2] ?? "");
  const at = Number(query.get("at"));
  return {
    conversation: decoded(match[1]!),
    view: query.get("view") === "model" ? "model" : "history",
    turn: query.get("turn"),
    at: Number.isInteger(at) && at > 0 ? at : null,
  };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

export function hashOf(place: Place): string {
  if (place.conversation === null) return "#/";
  const query = new URLSearchParams();
  if (place.view === "model") query.set("view", "model");
  if (place.turn !== null) query.set("turn", place.turn);
  if (place.at !== null) query.set("at", String(place.at));
  const rest = query.toString();
  return `#/c/${encodeURIComponent(place.conversation)}${rest === "" ? "" : `?${rest}`}`;
}

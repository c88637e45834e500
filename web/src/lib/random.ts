/** A key that nobody else makes. Not `crypto.randomUUID`: a page that is reached over plain HTTP by another name than
 * localhost has none. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

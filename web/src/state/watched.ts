/** The conversation that is being written while one watches: its figures are for the window it is shown in. */

const WINDOW_TOKENS = 8192;

let watched: string | null = null;

export function setWatched(conversation: string | null): void {
  watched = conversation;
}

/** The window to ask for; nothing for every other conversation, where it is that of the model. */
export function watchedWindow(conversation: string): { window?: number } {
  return conversation === watched ? { window: WINDOW_TOKENS } : {};
}

/** The keys that this browser knows, one for each owner: who is signed in, and whom one may change to. */

const KEY = "everthread.key";
const ACCOUNTS = "everthread.accounts";

export interface Account {
  readonly owner: string;
  readonly key: string;
}

export function currentKey(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function chooseKey(key: string | null): void {
  if (key === null) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, key);
}

export function knownAccounts(): readonly Account[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(ACCOUNTS) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is Account => typeof one?.owner === "string" && typeof one?.key === "string") : [];
  } catch {
    return [];
  }
}

/** From now on this one; a newer key of the same owner takes the place of the older one. */
export function signIn(account: Account): void {
  localStorage.setItem(ACCOUNTS, JSON.stringify([account, ...knownAccounts().filter((one) => one.owner !== account.owner)]));
  localStorage.setItem(KEY, account.key);
}

/** Forget the key of who is signed in, and with it what is kept here of theirs; another that is known takes its place. */
export function signOut(): void {
  const key = currentKey();
  const left = knownAccounts().filter((one) => one.key !== key);
  localStorage.clear();
  localStorage.setItem(ACCOUNTS, JSON.stringify(left));
  if (left[0] !== undefined) localStorage.setItem(KEY, left[0].key);
}

/** Asks for the key of a server that wants one, and says what is wrong with it; it is kept in this browser. Asked again because a
 * key was revoked, its owner finds the page as they left it. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Problem, whoseKey } from "../api/http";
import { renew } from "../api/queries";
import { currentKey, signIn } from "../state/accounts";
import { letIn } from "../state/entry";
import { useTexts } from "../texts";
import { saidOf } from "./Bits";
import { Wave } from "./Icon";

interface Props {
  readonly onCancel?: () => void;
  /** Whose page stands behind this, where one does. */
  readonly owner?: string | null;
}

export function SignIn({ onCancel, owner = null }: Props) {
  const { t } = useTexts();
  const cache = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const [wrong, setWrong] = useState<string | null>(currentKey() === null ? null : t.keyExpired);
  const enter = async (key: string) => {
    if (!/^[\x21-\x7e]+$/.test(key)) return setWrong(t.keyWrong); // no key looks so, and no header may hold it
    setAsking(true);
    try {
      const whose = await whoseKey(key);
      signIn({ owner: whose, key });
      if (whose !== owner) return location.reload();
      letIn();
      await renew(cache);
    } catch (problem) {
      setWrong(problem instanceof Problem && problem.status === 401 ? t.keyWrong : saidOf(problem, t).words);
      setAsking(false);
    }
  };
  return (
    <main className="signin">
      <p className="brand"><Wave />everthread</p>
      <h1>{t.signIn}</h1>
      <p className="soft">{t.signInText}</p>
      <pre className="plain">everthread key create --owner NAME</pre>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void enter(String(new FormData(event.currentTarget).get("key") ?? "").trim());
        }}
      >
        <label>
          {t.keyLabel}
          <input name="key" type="password" autoComplete="current-password" required autoFocus aria-invalid={wrong !== null} aria-describedby="key-wrong" onChange={() => setWrong(null)} />
        </label>
        <p id="key-wrong" className="bad" role="alert" style={{ margin: 0 }}>{wrong}</p>
        <div className="row">
          <button className="primary" disabled={isAsking}>{t.enter}</button>
          {onCancel && <button type="button" onClick={onCancel}>{t.cancel}</button>}
        </div>
      </form>
      <p className="faint">{t.keyKept}</p>
    </main>
  );
}

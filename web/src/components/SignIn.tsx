/** Asks for the key of a server that wants one, and says what is wrong with it; it is kept in this browser. */

import { useState } from "react";

import { Problem, whoseKey } from "../api/http";
import { currentKey, signIn } from "../state/accounts";
import { useTexts } from "../texts";

export function SignIn({ onCancel }: { readonly onCancel?: () => void }) {
  const { t } = useTexts();
  const [isAsking, setAsking] = useState(false);
  const [wrong, setWrong] = useState<string | null>(currentKey() === null ? null : t.keyExpired);
  const enter = async (key: string) => {
    if (!/^[\x21-\x7e]+$/.test(key)) return setWrong(t.keyWrong); // no key looks so, and no header may hold it
    setAsking(true);
    try {
      signIn({ owner: await whoseKey(key), key });
      location.reload();
    } catch (problem) {
      setWrong(problem instanceof Problem && problem.status === 401 ? t.keyWrong : problem instanceof Problem && problem.status === 0 ? t.unreachable : problem instanceof Error ? problem.message : String(problem));
      setAsking(false);
    }
  };
  return (
    <main className="signin">
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

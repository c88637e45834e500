/** Asks for the key of a server that wants one; it is kept in this browser. */

import { keepKey } from "../api/http";
import { useTexts } from "../texts";

export function SignIn() {
  const { t } = useTexts();
  return (
    <main className="empty">
      <h1>{t.signIn}</h1>
      <p><code>{t.signInText}</code></p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepKey(String(new FormData(event.currentTarget).get("key") ?? "").trim());
          location.reload();
        }}
      >
        <label>
          {t.keyLabel}
          <input name="key" type="password" autoComplete="off" required />
        </label>
        <p><button className="primary">{t.enter}</button></p>
      </form>
    </main>
  );
}

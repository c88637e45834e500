/** What kind of model answers here, and what helps it: sent with each question from this browser. Which model, the composer says. */

import { keepChoices, PREFERENCES, SWITCHES, useChoices, type Choices } from "../../state/choices";
import { useTexts } from "../../texts";

export function AskingForm({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const choices = useChoices(conversation);
  const change = (changed: { [Name in keyof Choices]?: Choices[Name] | undefined }) => {
    const next = Object.fromEntries(Object.entries({ ...choices, ...changed }).filter(([, value]) => value !== undefined && value !== "" && value !== "default"));
    keepChoices(conversation, next);
  };
  return (
    <form className="settings" onSubmit={(event) => event.preventDefault()}>
      <label>
        <span className="faint">{t.preference}</span>
        <select value={choices.model_pref ?? "default"} onChange={(event) => change({ model_pref: PREFERENCES.find((one) => one === event.target.value) })}>
          {PREFERENCES.map((one) => (
            <option key={one} value={one}>{t.preferences[one]}</option>
          ))}
        </select>
      </label>
      {SWITCHES.map((name) => (
        <label key={name} className="check">
          <input type="checkbox" checked={choices[name] ?? true} onChange={(event) => change({ [name]: event.target.checked ? undefined : false })} />
          <span>{t.switches[name]}</span>
        </label>
      ))}
    </form>
  );
}

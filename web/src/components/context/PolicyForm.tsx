/** How this conversation is compacted; what is refused is told in the service's words. */

import { usePolicy, useSetPolicy, type Policy } from "../../api/queries";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";

const NUMBERS = [
  { name: "threshold", step: 0.05 },
  { name: "keep_recent", step: 1 },
  { name: "max_message_history", step: 1 },
  { name: "recent_share", step: 0.05 },
  { name: "summaries_share", step: 0.05 },
  { name: "summary_max_tokens", step: 1 },
  { name: "recalled_max_tokens", step: 1 },
  { name: "memory_max_tokens", step: 1 },
] as const;
const CHECKS = ["enabled", "extract_memories"] as const;

export function PolicyForm({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const toast = useToast();
  const policy = usePolicy(conversation);
  const set = useSetPolicy(conversation);
  if (!policy.data) return policy.isError ? <Trouble problem={policy.error} /> : null;
  return (
    <form
      className="settings"
      onSubmit={(event) => {
        event.preventDefault();
        set.mutate(changedIn(new FormData(event.currentTarget), policy.data), { onSuccess: () => toast({ text: t.saved }) });
      }}
    >
      {CHECKS.map((name) => (
        <label key={name} className="check">
          <input name={name} type="checkbox" defaultChecked={policy.data[name]} />
          <span>{t.policy[name]}</span>
        </label>
      ))}
      <div className="pairs">
        {NUMBERS.map(({ name, step }) => (
          <label key={name}>
            <span className="faint">{t.policy[name]}</span>
            <input name={name} type="number" step={step} defaultValue={policy.data[name] ?? ""} />
          </label>
        ))}
      </div>
      <label>
        <span className="faint">{t.policy.summary_model}</span>
        <input name="summary_model" defaultValue={policy.data.summary_model ?? ""} placeholder={t.noModelSet} />
      </label>
      <button disabled={set.isPending}>{t.save}</button>
      {set.isError && <Trouble problem={set.error} />}
    </form>
  );
}

/** An empty field sets nothing. */
function numberIn(value: FormDataEntryValue | null): number | null {
  return value === null || value === "" ? null : Number(value);
}

/** Only what a person changed: the rest goes on following the server's settings. */
function changedIn(form: FormData, policy: Policy): Partial<Policy> {
  const given: Partial<Policy> = {
    ...Object.fromEntries(NUMBERS.map(({ name }) => [name, numberIn(form.get(name))])),
    ...Object.fromEntries(CHECKS.map((name) => [name, form.has(name)])),
    summary_model: String(form.get("summary_model") ?? "").trim() || null,
  };
  return Object.fromEntries(Object.entries(given).filter(([name, value]) => policy[name as keyof Policy] !== value));
}

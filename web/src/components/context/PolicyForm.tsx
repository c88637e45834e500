/** How this conversation is compacted; what is refused is told in the service's words. */

import { usePolicy, useSetPolicy } from "../../api/queries";
import { useTexts } from "../../texts";
import { Trouble, useToast } from "../Bits";

export function PolicyForm({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const toast = useToast();
  const policy = usePolicy(conversation);
  const set = useSetPolicy(conversation);
  if (!policy.data) return policy.isError ? <Trouble problem={policy.error} /> : null;
  const fields = [
    { name: "threshold", label: t.threshold_label, step: 0.05 },
    { name: "keep_recent", label: t.keepRecent, step: 1 },
    { name: "max_message_history", label: t.maxHistory, step: 1 },
  ] as const;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        const values = Object.fromEntries(fields.map(({ name }) => [name, Number(given.get(name))]));
        set.mutate(values, { onSuccess: () => toast({ text: t.saved }) });
      }}
    >
      {fields.map(({ name, label, step }) => (
        <label key={name} style={{ display: "block", marginBottom: "0.4rem" }}>
          <span className="faint">{label}</span>
          <input name={name} type="number" step={step} defaultValue={policy.data[name]} />
        </label>
      ))}
      <button disabled={set.isPending}>{t.save}</button>
      {set.isError && <Trouble problem={set.error} />}
    </form>
  );
}

/** Which model answers: one of those that are set, or another by its name; and how to connect one. */

import * as Menu from "@radix-ui/react-dropdown-menu";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useAbout } from "../../api/queries";
import { keepChoices, useChoices } from "../../state/choices";
import { useTexts } from "../../texts";
import { Box } from "../Bits";
import { Icon } from "../Icon";
import { Copy } from "../Said";

const EXAMPLES = [
  "EVERTHREAD_MODEL=openai:gpt-5-mini OPENAI_API_KEY=… everthread serve",
  "EVERTHREAD_MODEL=anthropic:claude-sonnet-4-5 ANTHROPIC_API_KEY=… everthread serve",
  "EVERTHREAD_MODEL=openai:qwen3 EVERTHREAD_MODEL_BASE_URL=http://127.0.0.1:11434/v1 everthread serve",
  "EVERTHREAD_MODEL=gguf:/path/to/model.gguf everthread serve",
];

export function ModelPicker({ conversation }: { readonly conversation: string }) {
  const { t } = useTexts();
  const about = useAbout();
  const cache = useQueryClient();
  const choices = useChoices(conversation);
  const [isHelping, setHelping] = useState(false);
  const [isNaming, setNaming] = useState(false);
  const usual = about.data?.model ?? t.localModel;
  const choose = (model: string | null) => {
    const { model: _, ...others } = choices;
    keepChoices(conversation, model === null ? others : { ...others, model });
    void cache.invalidateQueries({ queryKey: ["gauge", conversation] });
  };
  const others = [...new Set([...(about.data?.models ?? []).slice(1), ...(choices.model === undefined ? [] : [choices.model])])];
  const known = [{ name: usual, model: null }, ...others.map((name) => ({ name, model: name }))];
  return (
    <>
      <Menu.Root>
        <Menu.Trigger className="chooser" aria-label={`${t.model}: ${choices.model ?? usual}`}>
          <span>{shortened(choices.model ?? usual)}</span>
          <Icon name="chevron" />
        </Menu.Trigger>
        <Menu.Portal>
          <Menu.Content className="menu" align="start" sideOffset={4}>
            <Menu.Label className="faint">{t.whoAnswers}</Menu.Label>
            {known.map((one) => (
              <Menu.Item key={one.name} onSelect={() => choose(one.model)}>
                <span className="grow">{one.name}</span>
                {(choices.model ?? null) === one.model && <Icon name="check" />}
              </Menu.Item>
            ))}
            <Menu.Separator className="line" />
            <Menu.Item onSelect={() => setNaming(true)}>{t.otherModel}</Menu.Item>
            <Menu.Item onSelect={() => setHelping(true)}>{t.connectModel}</Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      <Box title={t.otherModel} open={isNaming} onClose={() => setNaming(false)}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            choose(String(new FormData(event.currentTarget).get("model") ?? "").trim() || null);
            setNaming(false);
          }}
        >
          <label>
            <span className="faint">{t.otherModelHint}</span>
            <input name="model" autoFocus placeholder="openai:gpt-5-mini" defaultValue={choices.model ?? ""} aria-label={t.modelName} />
          </label>
          <div className="row ends"><button className="primary">{t.save}</button></div>
        </form>
      </Box>
      <Box title={t.connectModel} open={isHelping} onClose={() => setHelping(false)}>
        <p>{t.connectModelText}</p>
        {EXAMPLES.map((line) => (
          <div key={line} className="row whole">
            <pre className="plain grow">{line}</pre>
            <Copy text={() => line} />
          </div>
        ))}
      </Box>
    </>
  );
}

/** The name without its provider, which the list has. */
function shortened(name: string): string {
  return name.startsWith("scripted:") ? name : (name.split(/[:/]/).at(-1) ?? name);
}

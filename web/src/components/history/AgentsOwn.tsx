/** Where the composer would be, in a session that its agent goes on with: why there is none, and how to go on here. */

import { useCopy } from "../../api/queries";
import { agentName } from "../../lib/agents";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";

interface Props {
  readonly conversation: string;
  readonly agent: string;
  readonly onOpen: (conversation: string) => void;
}

export function AgentsOwn({ conversation, agent, onOpen }: Props) {
  const { t } = useTexts();
  const copy = useCopy();
  return (
    <div className="notice row whole">
      <span className="grow">{t.agentsOwn(agentName(agent))}</span>
      <button disabled={copy.isPending} onClick={() => copy.mutate(conversation, { onSuccess: onOpen })}>{t.goOnInCopy}</button>
      {copy.isError && <Trouble problem={copy.error} />}
    </div>
  );
}

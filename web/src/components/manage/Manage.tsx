/** What concerns more than one conversation: memories, knowledge, agents' sessions, proof that nothing was changed, what was deleted, the server. */

import * as Tabs from "@radix-ui/react-tabs";

import { useAbout } from "../../api/queries";
import { useTexts } from "../../texts";
import { Box } from "../Bits";
import { Agents } from "./Agents";
import { DeletedConversations } from "./DeletedConversations";
import { Knowledge } from "./Knowledge";
import { AllMemories } from "./AllMemories";
import { Server } from "./Server";
import { Verify } from "./Verify";

export type Section = "verify" | "memories" | "knowledge" | "agents" | "deleted" | "server";

interface Props {
  readonly section: Section | null;
  readonly onSection: (section: Section | null) => void;
  readonly onOpen: (conversation: string, at?: number) => void;
}

export function Manage({ section, onSection, onOpen }: Props) {
  const { t } = useTexts();
  const about = useAbout();
  const leave = (conversation: string, at?: number) => {
    onSection(null);
    onOpen(conversation, at);
  };
  const sections: readonly Section[] = ["verify", "memories", "knowledge", "agents", "deleted", "server"];
  return (
    <Box title={t.manage} open={section !== null} onClose={() => onSection(null)} isLarge>
      <Tabs.Root value={section ?? "verify"} onValueChange={(next) => onSection(sections.find((one) => one === next) ?? "verify")}>
        <Tabs.List className="sections" aria-label={t.manage}>
          {sections.map((one) => <Tabs.Trigger key={one} value={one}>{t.sections[one]}</Tabs.Trigger>)}
        </Tabs.List>
        <Tabs.Content value="memories"><AllMemories onOpen={leave} /></Tabs.Content>
        <Tabs.Content value="knowledge"><Knowledge /></Tabs.Content>
        <Tabs.Content value="agents"><Agents onOpen={leave} /></Tabs.Content>
        <Tabs.Content value="verify"><Verify /></Tabs.Content>
        <Tabs.Content value="deleted"><DeletedConversations onOpen={leave} /></Tabs.Content>
        <Tabs.Content value="server"><Server isAdmin={about.data?.isAdmin === true} /></Tabs.Content>
      </Tabs.Root>
    </Box>
  );
}

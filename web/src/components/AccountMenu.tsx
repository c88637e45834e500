/** Who I am to this server, whom I may change to, and how to leave. */

import * as Menu from "@radix-ui/react-dropdown-menu";

import { useAbout } from "../api/queries";
import { chooseKey, currentKey, knownAccounts, signOut } from "../state/accounts";
import { useTexts } from "../texts";
import { Icon } from "./Icon";

interface Props {
  readonly onAdd: () => void;
  readonly onManage: () => void;
  readonly onImport: () => void;
  readonly onOffRecord: () => void;
  readonly onHelp: () => void;
}

export function AccountMenu(props: Props) {
  const { t } = useTexts();
  const about = useAbout();
  const owner = about.data?.owner ?? "";
  const key = currentKey();
  const others = knownAccounts().filter((one) => one.key !== key);
  const leave = () => {
    signOut();
    location.hash = "#/";
    location.reload();
  };
  const become = (account: { key: string }) => {
    chooseKey(account.key);
    location.hash = "#/";
    location.reload();
  };
  return (
    <Menu.Root>
      <Menu.Trigger className="plain who" aria-label={owner === "local" ? t.thisMachine : t.signedInAs(owner)}>
        <Icon name="user" />
        <span>{owner === "local" ? t.thisMachine : owner}</span>
        <Icon name="chevron" />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="start" side="top" sideOffset={4}>
          <Menu.Label className="faint">{about.data?.via === "local" ? t.noKeyNeeded : t.signedInAs(owner)}</Menu.Label>
          {others.map((one) => <Menu.Item key={one.owner} onSelect={() => become(one)}><Icon name="user" />{t.changeTo(one.owner)}</Menu.Item>)}
          <Menu.Item onSelect={props.onAdd}><Icon name="plus" />{t.addKey}</Menu.Item>
          <Menu.Separator className="line" />
          <Menu.Item onSelect={props.onManage}><Icon name="shield" />{t.manage}</Menu.Item>
          <Menu.Item onSelect={props.onImport}><Icon name="file" />{t.import}</Menu.Item>
          <Menu.Item onSelect={props.onOffRecord}><Icon name="stop" />{t.newOffRecord}</Menu.Item>
          <Menu.Separator className="line" />
          <Menu.Item onSelect={props.onHelp}><Icon name="key" />{t.help}</Menu.Item>
          {key !== null && (
            <>
              <Menu.Separator className="line" />
              <Menu.Item className="bad" onSelect={leave}><Icon name="left" />{t.signOut}</Menu.Item>
            </>
          )}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

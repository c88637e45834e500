/** The first visit: what this is, and something to try. */

import { useAbout, useLoadDemo } from "../api/queries";
import { useTexts } from "../texts";
import { Trouble } from "./Bits";
import { Icon } from "./Icon";

interface Props {
  readonly onTry: (text: string) => void;
  readonly onOpen: (conversation: string) => void;
  readonly onWatch: () => void;
}

export function Empty({ onTry, onOpen, onWatch }: Props) {
  const { t } = useTexts();
  const about = useAbout();
  const demo = useLoadDemo();
  const tries = about.data?.isToyModel ? t.toyTries : t.tries;
  return (
    <div className="scroll" style={{ display: "flex" }}>
      <div className="empty">
        <h1>{t.emptyTitle}</h1>
        <p className="soft">{t.emptyText}</p>
        <div className="row starts">
          <button className="primary" onClick={onWatch}><Icon name="play" />{t.watch}</button>
          <button disabled={demo.isPending} onClick={() => demo.mutate(undefined, { onSuccess: onOpen })}>{t.loadDemo}</button>
        </div>
        <p className="faint">{t.watchText}</p>
        {demo.isError && <Trouble problem={demo.error} />}
        <p className="faint" style={{ marginTop: "1.6rem" }}>{t.tryThis}</p>
        <div className="tries">
          {tries.map((text) => (
            <button key={text} onClick={() => onTry(text)}>{text}</button>
          ))}
        </div>
      </div>
    </div>
  );
}

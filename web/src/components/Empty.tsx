/** The first visit: what this is, and something to try. */

import { useLoadDemo } from "../api/queries";
import { useTexts } from "../texts";
import { Trouble } from "./Bits";

export function Empty({ onTry, onOpen }: { readonly onTry: (text: string) => void; readonly onOpen: (conversation: string) => void }) {
  const { t } = useTexts();
  const demo = useLoadDemo();
  return (
    <div className="scroll" style={{ display: "flex" }}>
      <div className="empty">
        <h1>{t.emptyTitle}</h1>
        <p>{t.emptyText}</p>
        <p className="faint">{t.tryThis}</p>
        <div className="tries">
          {t.tries.map((text) => (
            <button key={text} onClick={() => onTry(text)}>{text}</button>
          ))}
        </div>
        <button className="primary" disabled={demo.isPending} onClick={() => demo.mutate(undefined, { onSuccess: onOpen })}>{t.loadDemo}</button>
        {demo.isError && <Trouble problem={demo.error} />}
      </div>
    </div>
  );
}

/** Documents in collections that an agent may look things up in. */

import { useRef, useState } from "react";

import { useAddDocuments, useCollections, useDocuments, usePassages, useRemoveDocument } from "../../api/queries";
import { useTexts } from "../../texts";
import { Trouble } from "../Bits";
import { IconButton } from "../Icon";

export function Knowledge() {
  const { t } = useTexts();
  const collections = useCollections();
  const [chosen, setChosen] = useState<string | null>(null);
  const [name, setName] = useState("");
  const names = (collections.data ?? []).map((one) => String(one["name"] ?? one["collection"] ?? ""));
  const current = chosen ?? names[0] ?? null;
  const input = useRef<HTMLInputElement>(null);
  const add = useAddDocuments();
  const into = name.trim() || current || "documents";
  return (
    <div className="stack">
      <p className="soft">{t.knowledgeText}</p>
      {collections.isError && <Trouble problem={collections.error} />}
      {collections.data !== undefined && names.length === 0 && <p className="faint">{t.noKnowledge}</p>}
      {names.length > 0 && <div className="row">
        {names.map((one) => <button key={one} aria-pressed={one === current} className={one === current ? "primary" : ""} onClick={() => setChosen(one)}>{one}</button>)}
      </div>}
      <div className="row whole">
        <input value={name} onChange={(event) => setName(event.target.value)} aria-label={t.collection} placeholder={t.collectionHint(into)} />
        <button className="primary" disabled={add.isPending} onClick={() => input.current?.click()}>{t.addDocuments}</button>
        <input ref={input} type="file" multiple hidden aria-label={t.addDocuments} onChange={(event) => event.target.files?.length && add.mutate({ collection: into, files: [...event.target.files] }, { onSuccess: () => setChosen(into) })} />
      </div>
      {add.isError && <Trouble problem={add.error} />}
      {current !== null && names.includes(current) && <Documents key={current} collection={current} onRemoved={() => setChosen(null)} />}
    </div>
  );
}

function Documents({ collection, onRemoved }: { readonly collection: string; readonly onRemoved: () => void }) {
  const { t } = useTexts();
  const documents = useDocuments(collection);
  const remove = useRemoveDocument();
  const [text, setText] = useState("");
  const passages = usePassages(collection, text.trim());
  return (
    <>
      <input type="search" value={text} aria-label={t.searchKnowledge} placeholder={t.searchKnowledge} onChange={(event) => setText(event.target.value)} />
      {text.trim() !== "" ? (
        <ul className="list">
          {passages.data?.length === 0 && <li className="faint">{t.noHits}</li>}
          {passages.data?.map((hit, index) => {
            const passage = hit["passage"] as { document_id?: string; heading?: string | null; text?: string } | undefined;
            return <li key={index}><div className="faint">{[passage?.document_id, passage?.heading].filter(Boolean).join(" › ")}</div>{passage?.text}</li>;
          })}
        </ul>
      ) : (
        <ul className="list">
          {documents.data?.map((one) => (
            <li key={String(one["id"])} className="row">
              <span className="grow">{String(one["title"] ?? one["id"])}</span>
              <IconButton icon="remove" label={t.removeDocument(String(one["id"]))} onClick={() => remove.mutate({ collection, document: String(one["id"]) })} />
            </li>
          ))}
        </ul>
      )}
      <p><button className="danger" onClick={() => confirm(t.removeCollectionAsk(collection)) && remove.mutate({ collection, document: null }, { onSuccess: onRemoved })}>{t.removeCollection}</button></p>
      {remove.isError && <Trouble problem={remove.error} />}
    </>
  );
}

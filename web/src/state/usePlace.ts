import { useCallback, useEffect, useState } from "react";

import { hashOf, placeFrom, type Place } from "./place";

/** The place in the address, and a way to go elsewhere; the browser's own way back works. */
export function usePlace(): [Place, (change: (now: Place) => Place) => void] {
  const [place, setPlace] = useState(() => placeFrom(location.hash));
  useEffect(() => {
    const look = () => setPlace(placeFrom(location.hash));
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  const go = useCallback((change: (now: Place) => Place) => {
    const next = hashOf(change(placeFrom(location.hash)));
    if (next !== location.hash) location.hash = next;
  }, []);
  return [place, go];
}

/** A formula as it was written: until it can be drawn, and where it cannot. */

import type { Formula } from "../lib/formula";

export const WrittenFormula = ({ tex }: Formula) => <code className="formula">{tex}</code>;

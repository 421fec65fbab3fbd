/** Small components of several views. */

import type { ReactNode } from "react";
import { words } from "./format";

export function Problem({ children }: { children: ReactNode }) {
  return children ? (
    <p className="problem" role="alert">
      {children}
    </p>
  ) : null;
}

/** A status as a colored word; the color adds no information. */
export function Chip({ status }: { status: string }) {
  return <span className={`chip is-${status}`}>{words(status)}</span>;
}

export function Busy({ children }: { children: ReactNode }) {
  return (
    <p className="busy" role="status">
      <span className="spinner" aria-hidden="true" /> {children}
    </p>
  );
}

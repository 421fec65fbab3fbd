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

/** A status as a colored word; `look` is its color if that is another one. */
export function Chip({ status, look = status }: { status: string; look?: string }) {
  return <span className={`chip is-${look}`}>{words(status)}</span>;
}

export function Busy({ children }: { children: ReactNode }) {
  return (
    <p className="busy" role="status">
      <span className="spinner" aria-hidden="true" /> {children}
    </p>
  );
}

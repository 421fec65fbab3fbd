import { useId, type ReactNode, type ToggleEvent } from "react";

export interface Item {
  label: string;
  /** More about it, in a sentence. */
  about?: string;
  onChoose: () => void;
}

/** A button that opens a list of actions. */
export function Menu({ label, items }: { label: string; items: Item[] }) {
  return (
    <Popup
      label={
        <>
          {label} <span aria-hidden="true">▾</span>
        </>
      }
    >
      {items.map(({ label: name, about, onChoose }) => (
        <button
          key={name}
          type="button"
          onClick={(event) => {
            event.currentTarget.closest<HTMLElement>("[popover]")?.hidePopover();
            onChoose();
          }}
        >
          {about ? (
            <>
              {about} <small className="code quiet">{name}</small>
            </>
          ) : (
            name
          )}
        </button>
      ))}
    </Popup>
  );
}

/** A button, and what it shows beside it; Escape and a click elsewhere close that. */
export function Popup({ label, children }: { label: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <>
      <button type="button" className="plain" popoverTarget={id}>
        {label}
      </button>
      <div id={id} popover="auto" className="menu" onToggle={place}>
        {children}
      </div>
    </>
  );
}

const GAP = 4;
const EDGE = 8;

/** Place a popup below its button, or above it where there is more room. */
function place({ currentTarget: popup, newState }: ToggleEvent<HTMLElement>) {
  const button = popup.previousElementSibling?.getBoundingClientRect();
  if (newState === "closed" || !button) return;
  const [above, below] = [button.top - GAP - EDGE, innerHeight - button.bottom - GAP - EDGE];
  const isBelow = popup.scrollHeight <= below || below >= above;
  popup.style.maxHeight = `${isBelow ? below : above}px`;
  popup.style.left = `${Math.max(EDGE, Math.min(button.left, innerWidth - popup.offsetWidth - EDGE))}px`;
  popup.style.top = `${isBelow ? button.bottom + GAP : button.top - GAP - popup.offsetHeight}px`;
}

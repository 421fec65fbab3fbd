import { useId, useLayoutEffect, useRef, type ReactNode } from "react";

interface Props {
  title: ReactNode;
  children: ReactNode;
  /** Without it, the dialog cannot be closed. */
  onClose?: () => void;
  wide?: boolean;
}

/** A modal dialog; the browser traps the focus and restores it if the dialog is closed while mounted. */
export function Dialog({ title, children, onClose, wide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const open = dialog.current;
    open?.showModal();
    return () => {
      open?.close();
    };
  }, []);
  const cancelled = (event: React.SyntheticEvent) => {
    event.preventDefault();
    onClose?.();
  };
  return (
    <dialog ref={dialog} className={wide ? "wide" : undefined} aria-labelledby={heading} onCancel={cancelled}>
      <header>
        <h2 id={heading}>{title}</h2>
        {onClose && (
          <button type="button" className="plain" onClick={onClose} aria-label="Close">
            ✕
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

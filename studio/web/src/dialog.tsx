import { useId, type ReactNode } from "react";

interface Props {
  title: ReactNode;
  children: ReactNode;
  /** Without it, the dialog cannot be closed. */
  onClose?: () => void;
  wide?: boolean;
}

/** A modal dialog, open while it is mounted; then the focus returns to where it was. */
export function Dialog({ title, children, onClose, wide = false }: Props) {
  const id = useId();
  return (
    <dialog ref={open} className={wide ? "dialog wide" : "dialog"} aria-labelledby={id} {...closing(onClose)}>
      <header>
        <h2 id={id}>{title}</h2>
        {onClose && (
          <button type="button" className="plain" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** The word on the button that confirms. */
  action: string;
  children: ReactNode;
  onConfirm: () => void;
  onClose: () => void;
}

/** A question before something is lost. */
export function Confirm({ title, action, children, onConfirm, onClose }: ConfirmProps) {
  const id = useId();
  return (
    <dialog
      ref={open}
      className="dialog"
      role="alertdialog"
      aria-labelledby={id}
      aria-describedby={`${id}-more`}
      {...closing(onClose)}
    >
      <div className="stack">
        <h2 id={id}>{title}</h2>
        <p id={`${id}-more`}>{children}</p>
        <div className="row">
          <button
            type="button"
            className="danger"
            onClick={() => {
              onClose();
              onConfirm();
            }}
          >
            {action}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </dialog>
  );
}

/** Open a dialog when it is mounted, and close it before it is removed, so that the browser returns the focus. */
function open(dialog: HTMLDialogElement | null) {
  dialog?.showModal();
  return () => {
    dialog?.close();
  };
}

/** What Escape does: the dialog is closed by its removal. */
function closing(onClose?: () => void) {
  return {
    onCancel: (event: React.SyntheticEvent) => {
      event.preventDefault();
      onClose?.();
    },
  };
}

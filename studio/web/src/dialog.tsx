import { AlertDialog, Dialog as Primitive } from "radix-ui";
import { useState, type ReactNode } from "react";

interface Props {
  title: ReactNode;
  children: ReactNode;
  /** Without it, the dialog cannot be closed. */
  onClose?: () => void;
  wide?: boolean;
}

/** A modal dialog, open while it is mounted; then the focus returns to where it was. */
export function Dialog({ title, children, onClose, wide = false }: Props) {
  const [opener] = useState(() => document.activeElement);
  return (
    <Primitive.Root
      open
      onOpenChange={(open) => {
        if (!open) onClose?.();
      }}
    >
      <Primitive.Portal>
        <Primitive.Overlay className="overlay" />
        <Primitive.Content
          className={wide ? "dialog wide" : "dialog"}
          aria-describedby={undefined}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (opener instanceof HTMLElement) opener.focus();
          }}
        >
          <header>
            <Primitive.Title asChild>
              <h2>{title}</h2>
            </Primitive.Title>
            {onClose && (
              <Primitive.Close className="plain" aria-label="Close">
                ✕
              </Primitive.Close>
            )}
          </header>
          {children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
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
  const [opener] = useState(() => document.activeElement);
  return (
    <AlertDialog.Root
      open
      onOpenChange={(open) => {
        if (!open) onClose();
      }}
    >
      <AlertDialog.Portal>
        <AlertDialog.Overlay className="overlay" />
        <AlertDialog.Content
          className="dialog stack"
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (opener instanceof HTMLElement) opener.focus();
          }}
        >
          <AlertDialog.Title asChild>
            <h2>{title}</h2>
          </AlertDialog.Title>
          <AlertDialog.Description>{children}</AlertDialog.Description>
          <div className="row">
            <AlertDialog.Action className="danger" onClick={onConfirm}>
              {action}
            </AlertDialog.Action>
            <AlertDialog.Cancel>Cancel</AlertDialog.Cancel>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}

import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";

export interface Item {
  label: string;
  onChoose: () => void;
  disabled?: boolean;
}

/** A button that opens a menu of actions. */
export function Menu({ label, items }: { label: ReactNode; items: Item[] }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger className="menu-button">
        {label} <span aria-hidden="true">▾</span>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4} collisionPadding={8}>
          {items.map(({ label: name, onChoose, disabled = false }) => (
            <DropdownMenu.Item key={name} disabled={disabled} onSelect={onChoose}>
              {name}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

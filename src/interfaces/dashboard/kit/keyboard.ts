/** What a key does. No key changes anything in the store: actions have their own dialog. */
export type KeyCommand =
  | { readonly do: 'search' | 'open' | 'select' | 'help' | 'leave' }
  | { readonly do: 'move'; readonly by: 1 | -1 }
  | { readonly do: 'go'; readonly to: string }

/** Where `g` and a second key lead. */
export const GO_TARGETS: Readonly<Record<string, { readonly to: string; readonly name: string }>> =
  {
    o: { to: '/', name: 'Overview' },
    r: { to: '/runs', name: 'Runs' },
    w: { to: '/workers', name: 'Workers' },
    y: { to: '/recovery', name: 'Recovery' },
    d: { to: '/dead-letters', name: 'Dead letters' },
    h: { to: '/history', name: 'History' },
  }

const KEYS: Readonly<Record<string, KeyCommand>> = {
  '/': { do: 'search' },
  j: { do: 'move', by: 1 },
  k: { do: 'move', by: -1 },
  Enter: { do: 'open' },
  x: { do: 'select' },
  '?': { do: 'help' },
  Escape: { do: 'leave' },
}

/** The help, in the order in which it is shown. */
export const SHORTCUTS: readonly { readonly keys: readonly string[]; readonly does: string }[] = [
  { keys: ['/'], does: 'Search this list' },
  { keys: ['j'], does: 'Next row' },
  { keys: ['k'], does: 'Previous row' },
  { keys: ['Enter'], does: 'Open the row' },
  { keys: ['x'], does: 'Select the row, where rows can be selected' },
  ...Object.entries(GO_TARGETS).map(([key, { name }]) => ({
    keys: ['g', key],
    does: `Go to ${name}`,
  })),
  { keys: ['?'], does: 'This help' },
  { keys: ['Esc'], does: 'Leave a field, close a dialog' },
]

/** `afterG`: the key before was `g`, so this one names a place, or nothing. */
export function readKey(
  key: string,
  afterG: boolean,
): { readonly command: KeyCommand | null; readonly afterG: boolean } {
  if (afterG && Object.hasOwn(GO_TARGETS, key))
    return { command: { do: 'go', to: GO_TARGETS[key]!.to }, afterG: false }
  if (key === 'g') return { command: null, afterG: true }
  const command = !afterG && Object.hasOwn(KEYS, key) ? KEYS[key]! : null
  return { command, afterG: false }
}

/** The row that `j` or `k` leads to from row `at` of so many; -1 stands before the first. Null: there is none. */
export function nextRow(at: number, by: 1 | -1, count: number): number | null {
  if (count === 0) return null
  return Math.min(count - 1, Math.max(0, at + by))
}

const WITHOUT_TEXT: readonly string[] = [
  'button',
  'checkbox',
  'radio',
  'range',
  'reset',
  'submit',
  'file',
  'color',
]

/** Whether keys belong to what has the focus: a letter typed into a field is a letter. */
export function acceptsText(element: {
  readonly tag: string
  readonly type: string
  readonly isEditable: boolean
}): boolean {
  const tag = element.tag.toLowerCase()
  if (element.isEditable || tag === 'textarea' || tag === 'select') return true
  return tag === 'input' && !WITHOUT_TEXT.includes(element.type)
}

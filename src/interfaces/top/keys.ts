/** A key by its name, or the character it types. */
export type Key = string

const NAMES: Readonly<Record<string, Key>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'ctrl-c',
  '\x1a': 'ctrl-z',
  '\f': 'ctrl-l',
  '\x1b': 'escape',
}

/** What stands between `ESC [` or `ESC O` and the end of a sequence does not matter here: it names modifiers. */
const SEQUENCES: Readonly<Record<string, Key>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  Z: 'back-tab',
  '1~': 'home',
  '4~': 'end',
  '5~': 'page-up',
  '6~': 'page-down',
  '7~': 'home',
  '8~': 'end',
}

// oxlint-disable-next-line no-control-regex
const SEQUENCE = /^\x1b(?:\[([\d;?<]*)([A-Za-z~])|O([A-Z]))/
// oxlint-disable-next-line no-control-regex
const INCOMPLETE_SEQUENCE = /^\x1b(?:\[[\d;?<]*|O)?$/

/**
 * The keys in what a terminal sent. `rest`: the start of a sequence whose end has not come yet, or Escape itself; only
 * time tells which. Unknown sequences are no key.
 */
export function parseKeys(input: string): { keys: Key[]; rest: string } {
  const keys: Key[] = []
  for (let left = input; left !== '';) {
    if (INCOMPLETE_SEQUENCE.test(left)) return { keys, rest: left }
    const sequence = SEQUENCE.exec(left)
    if (sequence) {
      const [all, digits = '', end, other] = sequence
      const key = SEQUENCES[end === '~' ? `${digits.split(';')[0]}~` : (end ?? other)!]
      if (key) keys.push(key)
      left = left.slice(all.length)
      continue
    }
    const char = String.fromCodePoint(left.codePointAt(0)!)
    const key = NAMES[char] ?? (char >= ' ' ? char : null)
    if (key) keys.push(key)
    left = left.slice(char.length)
  }
  return { keys, rest: '' }
}

/** A sequence that did not end: Escape was pressed. */
export function flushKeys(rest: string): Key[] {
  return rest === '' ? [] : ['escape']
}

import { useEffect, useRef, useState } from 'preact/hooks'
import { observable, readSetting, saveSetting, useObserved } from '../observable.ts'
import { navigate } from '../router.ts'
import { DialogHead } from './action-dialog.tsx'
import { readKey, nextRow, SHORTCUTS, acceptsText, type KeyCommand } from './keyboard.ts'

const CHORD_MS = 1_500
const KEY = 'unstuck-keys'
const isOpen = observable(false)

/** Shows the help. */
function openShortcuts(): void {
  isOpen.set(true)
}

/** The keys of every page, and the help for them. Rendered once. */
export function Shortcuts() {
  const [isOn, setOn] = useState(() => readSetting(KEY) !== 'off')
  const shown = useObserved(isOpen)
  useKeys(isOn)
  const turn = (on: boolean) => {
    setOn(on)
    saveSetting(KEY, on ? null : 'off')
  }
  return shown ? <Help isOn={isOn} turn={turn} /> : null
}

function Help({ isOn, turn }: { isOn: boolean; turn: (on: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog
      ref={dialog}
      class="dialog dialog-small"
      aria-labelledby="shortcuts-title"
      onClose={() => isOpen.set(false)}
    >
      <div class="dialog-body">
        <DialogHead id="shortcuts-title" title="Keyboard" close={() => dialog.current?.close()} />
        <div class="dialog-content">
          <dl class="pairs">
            {SHORTCUTS.map(({ keys, does }) => (
              <div key={does}>
                <dt>
                  {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
          <label class="row soft">
            <input
              type="checkbox"
              checked={isOn}
              onChange={(event) => turn(event.currentTarget.checked)}
            />
            <span>Use these keys. No key changes anything by itself.</span>
          </label>
        </div>
      </div>
    </dialog>
  )
}

function useKeys(isOn: boolean): void {
  useEffect(() => {
    let gAt = -Infinity
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (document.querySelector('dialog[open]')) return
      const field = typingIn(document.activeElement)
      if (field) {
        if (event.key === 'Escape') field.blur()
        return
      }
      if (!isOn && event.key !== '?') return
      const { command, afterG } = readKey(event.key, performance.now() - gAt < CHORD_MS)
      gAt = afterG ? performance.now() : -Infinity
      if (command && applyShortcut(command)) event.preventDefault()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [isOn])
}

/** Whether the key had a meaning here; if not, the browser's own counts. */
function applyShortcut(command: KeyCommand): boolean {
  switch (command.do) {
    case 'search':
      return focusOn(document.querySelector<HTMLInputElement>('main input[type=search]'))
    case 'help':
      openShortcuts()
      return true
    case 'go':
      navigate(command.to)
      return true
    case 'move':
      return move(command.by)
    case 'open':
      return open()
    case 'select':
      return press('input[type=checkbox]')
    case 'leave':
      return false
  }
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>('main [data-row]')].filter(
    (row) => row.offsetParent !== null,
  )
}

function currentRow(): HTMLElement | null {
  return document.activeElement?.closest<HTMLElement>('[data-row]') ?? null
}

function move(by: 1 | -1): boolean {
  const all = rows()
  const at = nextRow(all.indexOf(currentRow()!), by, all.length)
  const row = at === null ? null : all[at]!
  if (row && row.tabIndex !== 0) row.tabIndex = -1
  if (!focusOn(row)) return false
  row!.scrollIntoView({ block: 'nearest' })
  return true
}

/** Only from the row itself: Enter on a link or a button within it is that link's or button's. */
function open(): boolean {
  return document.activeElement === currentRow() && press('a[href], summary')
}

function press(what: string): boolean {
  const found = currentRow()?.querySelector<HTMLElement>(what)
  found?.click()
  return Boolean(found)
}

function focusOn(element: HTMLElement | null): boolean {
  element?.focus()
  if (element instanceof HTMLInputElement) element.select()
  return element !== null
}

function typingIn(element: Element | null): HTMLElement | null {
  if (!(element instanceof HTMLElement)) return null
  const { tagName: tag, isContentEditable: isEditable } = element
  const type = element instanceof HTMLInputElement ? element.type : ''
  return acceptsText({ tag, type, isEditable }) ? element : null
}

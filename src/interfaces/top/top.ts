import { messageOf, StoreUnavailableError, UnstuckError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'
import { applyPlan, planAction } from './actions.ts'
import { drawTop } from './frame.ts'
import type { Key } from './keys.ts'
import { takeSnapshot, type TopContext, type Snapshot } from './snapshot.ts'
import { handleKey, type Effect } from './key-actions.ts'
import { initialState, type TopState } from './state.ts'
import { openTerminal, type Terminal } from './terminal.ts'

const POLL_MS = 1_000
/** Of its time the database spends one part on a look, and so many on other things. */
const IDLE_RATIO = 10

/** How long after a look the next one comes: a look that reads much is not taken every second. */
export function pollDelay(tookMs: number): number {
  return Math.max(POLL_MS, IDLE_RATIO * tookMs)
}

export type TopOptions = { readonly readonly: boolean; readonly colour: boolean }

/** The whole screen until somebody quits: keys go in, drawings come out, and what lies between is pure. */
export class Top {
  readonly #context: TopContext
  readonly #colour: boolean
  readonly #closing = new AbortController()
  readonly #ended = Promise.withResolvers<void>()
  /** Deeds under way: who quits waits for them. */
  readonly #pending = new Set<Promise<void>>()
  #state: TopState
  #snapshot: Snapshot | null = null
  #terminal: Terminal | null = null
  #timer: NodeJS.Timeout | undefined
  #isPolling = false
  #pollsAgain = false

  constructor(context: TopContext, { readonly, colour }: TopOptions) {
    this.#context = context
    this.#colour = colour
    this.#state = initialState(readonly)
  }

  async run(): Promise<void> {
    this.#terminal = openTerminal({
      onKey: (key) => this.#handleKey(key),
      onChange: () => this.#draw(),
      onEnd: () => this.#ended.resolve(),
    })
    try {
      this.#draw()
      this.#pollNow()
      await this.#ended.promise
    } finally {
      clearTimeout(this.#timer)
      this.#closing.abort()
      this.#terminal.close()
      await Promise.all(this.#pending)
    }
  }

  #handleKey(key: Key): void {
    const { state, effect } = handleKey(this.#state, key, this.#snapshot, this.#terminal!.size)
    this.#state = state
    if (effect) this.#applyEffect(effect)
    this.#draw()
  }

  #applyEffect(effect: Effect): void {
    switch (effect.type) {
      case 'quit':
        return this.#ended.resolve()
      case 'suspend':
        return this.#terminal!.suspend()
      case 'redraw':
        return this.#terminal!.clear()
      case 'look':
        return this.#pollNow()
      case 'plan':
        return this.#track(async () => {
          const plan = await planAction(this.#context.operator, effect.action, this.#closing.signal)
          this.#set({ screen: { kind: 'plan', plan, scroll: 0 } })
        })
      case 'act':
        return this.#track(async () => {
          const { message, undo } = await applyPlan(
            this.#context.operator,
            effect.plan,
            this.#closing.signal,
          )
          const back = undo.length > 0 ? ' u takes it back.' : ''
          this.#set({ message: { text: `${message}${back}`, style: 'good' }, undo })
          this.#pollNow()
        })
    }
  }

  /** Something that takes a while. What it is refused with is said, and the screen goes on. */
  #track(work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) => {
        if (this.#closing.signal.aborted) return
        if (error instanceof UnstuckError) {
          this.#set({ message: { text: redact(messageOf(error)), style: 'bad' } })
        } else this.#ended.reject(error)
      })
      .finally(() => {
        this.#pending.delete(done)
        this.#set({ busy: null })
      })
    this.#pending.add(done)
  }

  /** At once, and then again and again. Two looks never overlap. */
  #pollNow(): void {
    if (this.#isPolling) {
      this.#pollsAgain = true
      return
    }
    clearTimeout(this.#timer)
    this.#isPolling = true
    const started = performance.now()
    const done = this.#poll().finally(() => {
      this.#pending.delete(done)
      this.#isPolling = false
      if (this.#closing.signal.aborted) return
      const pause = this.#pollsAgain ? 0 : pollDelay(performance.now() - started)
      this.#pollsAgain = false
      this.#timer = setTimeout(() => this.#pollNow(), pause)
    })
    this.#pending.add(done)
  }

  async #poll(): Promise<void> {
    try {
      this.#snapshot = await takeSnapshot(this.#context, this.#state)
      this.#set({ error: null })
    } catch (error) {
      if (this.#closing.signal.aborted) return
      if (!(error instanceof StoreUnavailableError)) return this.#ended.reject(error)
      const why = redact(messageOf(error))
      this.#set({ error: `The database does not answer: this is what it was. ${why}` })
    }
  }

  #set(change: Partial<TopState>): void {
    this.#state = { ...this.#state, ...change }
    this.#draw()
  }

  #draw(): void {
    const terminal = this.#terminal
    if (!terminal) return
    terminal.draw(drawTop(this.#state, this.#snapshot, terminal.size, this.#colour))
  }
}

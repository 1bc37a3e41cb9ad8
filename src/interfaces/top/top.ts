import { messageOf, StoreUnavailableError, UnstuckError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'
import { planAction } from './actions.ts'
import { drawTop } from './frame.ts'
import { takeSnapshot, type TopContext, type Snapshot } from './snapshot.ts'
import { handleKey, initialState, type Effect, type TopState } from './state.ts'
import { openTerminal, type Key, type Terminal } from './terminal.ts'

const POLL_MS = 1_000
/** Reading takes at most one part in this many of the database's time. */
const IDLE_RATIO = 10

/** The pause after a read: an expensive read is not repeated every second. */
export function pollDelay(tookMs: number): number {
  return Math.max(POLL_MS, IDLE_RATIO * tookMs)
}

export type TopOptions = { readonly readonly: boolean; readonly colour: boolean }

/** The full-screen program: keys and snapshots in, drawings out; the functions between are pure. */
export class Top {
  readonly #context: TopContext
  readonly #colour: boolean
  readonly #closing = new AbortController()
  readonly #ended = Promise.withResolvers<void>()
  /** Reads and actions under way: quitting waits for them. */
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
      case 'refresh':
        return this.#pollNow()
      case 'plan':
        return this.#track(async () => {
          const plan = await planAction(this.#context.operator, effect.action, this.#closing.signal)
          this.#set({ screen: { kind: 'plan', plan, scroll: 0 } })
        })
      case 'apply':
        return this.#track(async () => {
          const { message, undo } = await effect.plan.apply()
          const hint = undo.length > 0 ? ' u reverts it.' : ''
          this.#set({ message: { text: `${message}${hint}`, style: 'good' }, undo })
          this.#pollNow()
        })
    }
  }

  /** Runs an action. A refusal is shown, and the screen continues. */
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

  /** Reads now, then periodically. Two reads never overlap. */
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
      this.#set({ error: `The database is unreachable: the data shown is old. ${why}` })
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

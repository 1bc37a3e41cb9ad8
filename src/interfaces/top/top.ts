import { messageOf, StoreUnavailable, UnstuckError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'
import { carryOut, planDeed } from './actions.ts'
import { drawTop } from './frame.ts'
import type { Key } from './keys.ts'
import { lookOnce, type Ground, type Look } from './snapshot.ts'
import { press, type Wish } from './key-actions.ts'
import { startState, type TopState } from './state.ts'
import { openTerminal, type Terminal } from './terminal.ts'

const LOOK_EVERY_MS = 1_000
/** Of its time the database spends one part on a look, and so many on other things. */
const PARTS = 10

/** How long after a look the next one comes: a look that reads much is not taken every second. */
export function pauseAfter(tookMs: number): number {
  return Math.max(LOOK_EVERY_MS, PARTS * tookMs)
}

export type TopOptions = { readonly readonly: boolean; readonly colour: boolean }

/** The whole screen until somebody quits: keys go in, drawings come out, and what lies between is pure. */
export class Top {
  readonly #ground: Ground
  readonly #colour: boolean
  readonly #leaving = new AbortController()
  readonly #ended = Promise.withResolvers<void>()
  /** Deeds under way: who quits waits for them. */
  readonly #pending = new Set<Promise<void>>()
  #state: TopState
  #look: Look | null = null
  #terminal: Terminal | null = null
  #timer: NodeJS.Timeout | undefined
  #isLooking = false
  #looksAgain = false

  constructor(ground: Ground, { readonly, colour }: TopOptions) {
    this.#ground = ground
    this.#colour = colour
    this.#state = startState(readonly)
  }

  async run(): Promise<void> {
    this.#terminal = openTerminal({
      onKey: (key) => this.#press(key),
      onChange: () => this.#draw(),
      onEnd: () => this.#ended.resolve(),
    })
    try {
      this.#draw()
      this.#lookNow()
      await this.#ended.promise
    } finally {
      clearTimeout(this.#timer)
      this.#leaving.abort()
      this.#terminal.close()
      await Promise.all(this.#pending)
    }
  }

  #press(key: Key): void {
    const { state, wish } = press(this.#state, key, this.#look, this.#terminal!.size)
    this.#state = state
    if (wish) this.#grant(wish)
    this.#draw()
  }

  #grant(wish: Wish): void {
    switch (wish.want) {
      case 'quit':
        return this.#ended.resolve()
      case 'suspend':
        return this.#terminal!.suspend()
      case 'redraw':
        return this.#terminal!.clear()
      case 'look':
        return this.#lookNow()
      case 'plan':
        return this.#follow(async () => {
          const plan = await planDeed(this.#ground.door, wish.deed, this.#leaving.signal)
          this.#set({ screen: { show: 'plan', plan, scroll: 0 } })
        })
      case 'act':
        return this.#follow(async () => {
          const { said, undo } = await carryOut(this.#ground.door, wish.plan, this.#leaving.signal)
          const back = undo.length > 0 ? ' u takes it back.' : ''
          this.#set({ said: { text: `${said}${back}`, ink: 'good' }, undo })
          this.#lookNow()
        })
    }
  }

  /** Something that takes a while. What it is refused with is said, and the screen goes on. */
  #follow(work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) => {
        if (this.#leaving.signal.aborted) return
        if (error instanceof UnstuckError) {
          this.#set({ said: { text: redact(messageOf(error)), ink: 'bad' } })
        } else this.#ended.reject(error)
      })
      .finally(() => {
        this.#pending.delete(done)
        this.#set({ busy: null })
      })
    this.#pending.add(done)
  }

  /** At once, and then again and again. Two looks never overlap. */
  #lookNow(): void {
    if (this.#isLooking) {
      this.#looksAgain = true
      return
    }
    clearTimeout(this.#timer)
    this.#isLooking = true
    const started = performance.now()
    const done = this.#lookAround().finally(() => {
      this.#pending.delete(done)
      this.#isLooking = false
      if (this.#leaving.signal.aborted) return
      const pause = this.#looksAgain ? 0 : pauseAfter(performance.now() - started)
      this.#looksAgain = false
      this.#timer = setTimeout(() => this.#lookNow(), pause)
    })
    this.#pending.add(done)
  }

  async #lookAround(): Promise<void> {
    try {
      this.#look = await lookOnce(this.#ground, this.#state)
      this.#set({ trouble: null })
    } catch (error) {
      if (this.#leaving.signal.aborted) return
      if (!(error instanceof StoreUnavailable)) return this.#ended.reject(error)
      const why = redact(messageOf(error))
      this.#set({ trouble: `The database does not answer: this is what it was. ${why}` })
    }
  }

  #set(change: Partial<TopState>): void {
    this.#state = { ...this.#state, ...change }
    this.#draw()
  }

  #draw(): void {
    const terminal = this.#terminal
    if (!terminal) return
    terminal.draw(drawTop(this.#state, this.#look, terminal.size, this.#colour))
  }
}

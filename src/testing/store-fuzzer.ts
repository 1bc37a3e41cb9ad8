import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Claimed } from '../core/model/claim.ts'
import { LeaseLost, PageBehind, UsageError } from '../core/model/errors.ts'
import type { RunId, WorkerId } from '../core/model/id.ts'
import type { Store } from '../core/store/store.ts'
import { assertBooksBalance } from './assert-counters.ts'
import { allTargets, bury, claim, hire, judge, page, startCrawl } from './fixtures.ts'

const DEEDS = [
  'claim',
  'claim',
  'claim alone',
  'save',
  'save',
  'save again',
  'save last',
  'finish',
  'fail',
  'give up',
  'release',
  'park',
  'report',
  'beat',
  'plan',
  'settle',
  'die',
  'rob',
  'retire',
  'cancel',
  'reopen',
  'reopen',
  'set aside',
  'rewind',
  'time out',
  'interrupt',
] as const
type Act = { actor: number; deed: (typeof DEEDS)[number]; pick: number }

type Actor = {
  store: Store
  worker: WorkerId
  /** Everything it ever claimed, as it last knew it: much of it lost by now. */
  claims: Claimed[]
}

const DEED = { actor: 'the tests', because: 'x' }

/** Several stores that do anything to one run, in any order and at once. */
export class Troupe {
  readonly #actors: Actor[]
  readonly #source: string
  readonly #run: RunId
  readonly #seen = new Map<string, { epoch: number; page: number; seq: number }>()

  private constructor(actors: Actor[], source: string, run: RunId) {
    this.#actors = actors
    this.#source = source
    this.#run = run
  }

  static scripts(actors: number): fc.Arbitrary<Act[][]> {
    const act = fc.record({
      actor: fc.nat(actors - 1),
      deed: fc.constantFrom(...DEEDS),
      pick: fc.nat(9),
    })
    return fc.array(fc.array(act, { minLength: 1, maxLength: 4 }), { minLength: 5, maxLength: 20 })
  }

  static async gather(stores: readonly Store[], source: string): Promise<Troupe> {
    const run = await startCrawl(
      stores[0]!,
      Array.from({ length: 6 }, (_, n) => ({ key: `t${n}`, group: n % 2 ? 'odd' : 'even' })),
      { source },
    )
    const actors = await Promise.all(
      stores.map(async (store) => ({ store, worker: await hire(store, { source }), claims: [] })),
    )
    return new Troupe(actors, source, run)
  }

  /** Plays one act. Refusals are part of the play; anything else thrown is not. */
  async play({ actor: n, deed, pick }: Act): Promise<void> {
    const actor = this.#actors[n]!
    const { store, worker, claims } = actor
    const held = claims.at(-1 - (pick % Math.max(1, claims.length)))
    switch (deed) {
      case 'claim':
      case 'claim alone': {
        const request = { source: this.#source, empty: deed === 'claim alone' }
        claims.push(...(await claim(store, worker, 1 + (pick % 3), request)))
        return
      }
      case 'beat':
        await store.beat({ worker, claimIds: claims.map(({ claimId }) => claimId), loopLagMs: 0 })
        return
      case 'plan':
        await store
          .plan(this.#run, [{ key: `more ${pick}`, group: 'odd' }])
          .catch((error: unknown) => assert.ok(error instanceof UsageError, String(error)))
        return
      case 'settle':
        await store.settle(this.#run)
        return
      case 'die':
        await bury(store, worker, pick % 3 ? 'resume' : 'park')
        actor.worker = await hire(store, { source: this.#source })
        return
      case 'rob': {
        // Takes somebody else for dead who is not.
        const other = this.#actors[pick % this.#actors.length]!
        await bury(store, other.worker, pick % 4 ? 'resume' : 'hold')
        return
      }
      case 'retire':
        await store.release(claims)
        await bury(store, worker)
        await store.retire(worker)
        actor.worker = await hire(store, { source: this.#source })
        return
      case 'cancel':
      case 'interrupt': {
        const to = deed === 'cancel' ? 'cancelled' : 'interrupted'
        const move = {
          run: this.#run,
          to,
          action: deed,
          evidence: null,
          only: {},
          ...DEED,
        } as const
        await store.moveRun(move)
        return
      }
      case 'reopen': {
        const statuses = (['failed', 'stuck', 'parked'] as const).slice(pick % 3)
        const chosen = { run: this.#run, action: 'resume', statuses, reopen: true } as const
        await store.replan({ ...chosen, dryRun: pick === 9, ...DEED })
        return
      }
      case 'set aside':
        if (held) await store.setAside({ targets: [held.target], ...DEED })
        return
      case 'rewind':
        await this.#rewind(actor, held, pick)
        return
      case 'time out': {
        const judgements = await judge(store, worker, pick % 2 ? 'resume' : 'fail')
        await store.applyJudgements(
          judgements.map((one) => ({ ...one, sign: 'stalled' as const })),
          'the tests',
        )
        return
      }
      default:
        if (held) await this.#write(actor, held, deed, pick)
    }
  }

  async #rewind({ store }: Actor, held: Claimed | undefined, pick: number): Promise<void> {
    if (!held) return
    const back = { target: held.target, to: pick % 3, next: null, cursor: null, ...DEED }
    // It may stand before that page.
    await store.rewind(back).catch((error: unknown) => {
      assert.ok(error instanceof UsageError, String(error))
    })
  }

  async #write(actor: Actor, held: Claimed, deed: Act['deed'], pick: number): Promise<void> {
    const { store } = actor
    if (deed === 'save' || deed === 'save again' || deed === 'save last') {
      const items = [{ key: `item ${pick}`, data: pick }]
      const next = page(held, { items, done: deed === 'save last', skipped: 1 })
      const [outcome] = await store.checkpoint([next])
      if (!outcome!.ok) return refused(outcome!.error)
      actor.claims.push({ ...held, seq: outcome!.value, page: next.page })
      if (deed === 'save again') refusedUnless((await store.checkpoint([next]))[0]!)
      return
    }
    const outcome =
      deed === 'finish'
        ? (await store.finish([held]))[0]!
        : deed === 'fail'
          ? (await store.fail([{ ...held, error: 'x', retryInMs: 0 }]))[0]!
          : deed === 'give up'
            ? (await store.fail([{ ...held, error: 'x', retryInMs: null }]))[0]!
            : deed === 'release'
              ? (await store.release([held]))[0]!
              : deed === 'park'
                ? (await store.park([{ ...held, reason: 'x' }]))[0]!
                : await store.reportProgress(held, { done: pick, total: 10 })
    refusedUnless(outcome)
  }

  /** While nobody plays: the books balance, no target went back, and the items are those that were counted. */
  async assertSound(): Promise<void> {
    const { store } = this.#actors[0]!
    await assertBooksBalance(store, this.#run)
    for (const target of await allTargets(store, this.#run)) {
      const before = this.#seen.get(target.id) ?? { epoch: 0, page: 0, seq: 0 }
      assert.ok(target.epoch >= before.epoch, 'an epoch went back')
      const rewound = target.epoch > before.epoch
      assert.ok(target.page >= before.page || rewound, 'a page went back')
      assert.ok(target.seq >= before.seq, 'a sequence went back')
      assert.equal(target.status === 'in_progress', target.worker !== null)
      this.#seen.set(target.id, target)
    }
    const run = await store.run(this.#run)
    const items = await store.items(this.#source, null, 1_000)
    assert.equal(run!.counts.itemsNew, items.length)
    assert.equal(run!.counts.skipped, run!.counts.pages)
    const { itemsNew, itemsUpdated, itemsUnchanged, pages } = run!.counts
    assert.equal(itemsNew + itemsUpdated + itemsUnchanged, pages)
  }
}

function refusedUnless(outcome: { ok: true } | { ok: false; error: Error }): void {
  if (!outcome.ok) refused(outcome.error)
}

function refused(error: Error): void {
  assert.ok(error instanceof LeaseLost || error instanceof PageBehind, String(error))
}

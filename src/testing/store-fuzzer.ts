import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { ClaimedTarget } from '../core/model/claim.ts'
import { LeaseLostError, PageBehindError, UsageError } from '../core/model/errors.ts'
import type { RunId, WorkerId } from '../core/model/id.ts'
import type { Store } from '../core/store/store.ts'
import { assertCountersConsistent } from './assert-counters.ts'
import {
  itemsOf,
  listTargets,
  recoverWorker,
  claim,
  registerWorker,
  pendingVerdicts,
  nextCheckpoint,
  enqueueCrawl,
} from './fixtures.ts'

const OPERATIONS = [
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
type Step = { client: number; operation: (typeof OPERATIONS)[number]; pick: number }

type FuzzClient = {
  store: Store
  worker: WorkerId
  /** Everything it ever claimed, as it last knew it: much of it lost by now. */
  claims: ClaimedTarget[]
}

const AUDIT = { actor: 'the tests', because: 'x' }

/** Several stores that do anything to one run, in any order and at once. */
export class StoreFuzzer {
  readonly #clients: FuzzClient[]
  readonly #source: string
  readonly #run: RunId
  readonly #seen = new Map<string, { epoch: number; page: number; seq: number }>()

  private constructor(clients: FuzzClient[], source: string, run: RunId) {
    this.#clients = clients
    this.#source = source
    this.#run = run
  }

  static sequences(clients: number): fc.Arbitrary<Step[][]> {
    const act = fc.record({
      client: fc.nat(clients - 1),
      operation: fc.constantFrom(...OPERATIONS),
      pick: fc.nat(9),
    })
    return fc.array(fc.array(act, { minLength: 1, maxLength: 4 }), { minLength: 5, maxLength: 20 })
  }

  static async create(stores: readonly Store[], source: string): Promise<StoreFuzzer> {
    const run = await enqueueCrawl(
      stores[0]!,
      Array.from({ length: 6 }, (_, n) => ({ key: `t${n}`, group: n % 2 ? 'odd' : 'even' })),
      { source },
    )
    const clients = await Promise.all(
      stores.map(async (store) => ({
        store,
        worker: await registerWorker(store, { source }),
        claims: [],
      })),
    )
    return new StoreFuzzer(clients, source, run)
  }

  /** Plays one act. Refusals are part of the play; anything else thrown is not. */
  async apply({ client: n, operation, pick }: Step): Promise<void> {
    const client = this.#clients[n]!
    const { store, worker, claims } = client
    const held = claims.at(-1 - (pick % Math.max(1, claims.length)))
    switch (operation) {
      case 'claim':
      case 'claim alone': {
        const request = { source: this.#source, isIdle: operation === 'claim alone' }
        claims.push(...(await claim(store, worker, 1 + (pick % 3), request)))
        return
      }
      case 'beat':
        await store.heartbeat({
          worker,
          claimIds: claims.map(({ claimId }) => claimId),
          loopLagMs: 0,
        })
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
        await recoverWorker(store, worker, pick % 3 ? 'resume' : 'park')
        client.worker = await registerWorker(store, { source: this.#source })
        return
      case 'rob': {
        // Considers a live worker dead.
        const other = this.#clients[pick % this.#clients.length]!
        await recoverWorker(store, other.worker, pick % 4 ? 'resume' : 'hold')
        return
      }
      case 'retire':
        await store.release(claims)
        await recoverWorker(store, worker)
        await store.retireWorker(worker)
        client.worker = await registerWorker(store, { source: this.#source })
        return
      case 'cancel':
      case 'interrupt': {
        const to = operation === 'cancel' ? 'cancelled' : 'interrupted'
        const move = {
          run: this.#run,
          to,
          action: operation,
          evidence: null,
          expected: {},
          ...AUDIT,
        } as const
        await store.moveRun(move)
        return
      }
      case 'reopen': {
        const statuses = (['failed', 'stuck', 'parked'] as const).slice(pick % 3)
        const chosen = { run: this.#run, action: 'resume', statuses, reopen: true } as const
        await store.replan({ ...chosen, dryRun: pick === 9, ...AUDIT })
        return
      }
      case 'set aside':
        if (held) await store.parkTargets({ targets: [held.target], ...AUDIT })
        return
      case 'rewind':
        await this.#rewind(client, held, pick)
        return
      case 'time out': {
        const judgements = await pendingVerdicts(store, worker, pick % 2 ? 'resume' : 'fail')
        await store.applyVerdicts(
          judgements.map((one) => ({ ...one, liveness: 'stalled' as const })),
          'the tests',
        )
        return
      }
      default:
        if (held) await this.#write(client, held, operation, pick)
    }
  }

  async #rewind(
    { store }: FuzzClient,
    held: ClaimedTarget | undefined,
    pick: number,
  ): Promise<void> {
    if (!held) return
    const back = { target: held.target, to: pick % 3, next: null, cursor: null, ...AUDIT }
    // It may stand before that page.
    await store.rewind(back).catch((error: unknown) => {
      assert.ok(error instanceof UsageError, String(error))
    })
  }

  async #write(
    client: FuzzClient,
    held: ClaimedTarget,
    operation: Step['operation'],
    pick: number,
  ): Promise<void> {
    const { store } = client
    if (operation === 'save' || operation === 'save again' || operation === 'save last') {
      const items = [{ key: `item ${pick}`, data: pick }]
      const next = nextCheckpoint(held, { items, done: operation === 'save last', skipped: 1 })
      const [outcome] = await store.checkpoint([next])
      if (!outcome!.ok) return assertRejected(outcome!.error)
      client.claims.push({ ...held, ...outcome!.value, page: next.page })
      if (operation === 'save again') assertOkOrRejected((await store.checkpoint([next]))[0]!)
      return
    }
    const outcome =
      operation === 'finish'
        ? (await store.finish([held]))[0]!
        : operation === 'fail'
          ? (await store.fail([{ ...held, error: 'x', becomes: { retryInMs: 0 } }]))[0]!
          : operation === 'give up'
            ? (await store.fail([{ ...held, error: 'x', becomes: 'failed' }]))[0]!
            : operation === 'release'
              ? (await store.release([held]))[0]!
              : operation === 'park'
                ? (await store.fail([{ ...held, error: 'x', becomes: 'parked' }]))[0]!
                : await store.reportProgress(held, { done: pick, total: 10 })
    assertOkOrRejected(outcome)
  }

  /** Between steps: counters equal the rows, no cursor went back, and items match their counts. */
  async assertSound(): Promise<void> {
    const { store } = this.#clients[0]!
    await assertCountersConsistent(store, this.#run)
    for (const target of await listTargets(store, this.#run)) {
      const before = this.#seen.get(target.id) ?? { epoch: 0, page: 0, seq: 0 }
      assert.ok(target.epoch >= before.epoch, 'an epoch went back')
      const rewound = target.epoch > before.epoch
      assert.ok(target.page >= before.page || rewound, 'a page went back')
      assert.ok(target.seq >= before.seq, 'a sequence went back')
      assert.equal(target.status === 'in_progress', target.worker !== null)
      this.#seen.set(target.id, target)
    }
    const run = await store.run(this.#run)
    const items = await itemsOf(store, this.#source)
    assert.equal(run!.counts.itemsNew, items.length)
    assert.equal(run!.counts.skipped, run!.counts.pages)
    const { itemsNew, itemsUpdated, itemsUnchanged, pages } = run!.counts
    assert.equal(itemsNew + itemsUpdated + itemsUnchanged, pages)
  }
}

function assertOkOrRejected(outcome: { ok: true } | { ok: false; error: Error }): void {
  if (!outcome.ok) assertRejected(outcome.error)
}

function assertRejected(error: Error): void {
  assert.ok(error instanceof LeaseLostError || error instanceof PageBehindError, String(error))
}

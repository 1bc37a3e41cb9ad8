import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunId } from '../../src/core/model/id.ts'
import { createApiClient, type ApiClient } from '../../src/testing/api-client.ts'
import {
  beginOne,
  claimOne,
  enqueueCrawl,
  enqueueInterrupted,
  enqueueSingle,
  listTargets,
  savePage,
} from '../../src/testing/fixtures.ts'

/** Every action that is offered is accepted, and every other one is refused with its reason or changes nothing. */

type RunSituation = {
  /** Names of the offered actions, in order. */
  readonly offered: string
  /** By action: the reason. What is not listed is accepted. */
  readonly refused: Readonly<Record<string, RegExp>>
  arrange(api: ApiClient): Promise<RunId>
}

/** A crawl that has ended with targets in these statuses. */
async function endedCrawl(
  { ctx: { store }, ...api }: ApiClient,
  ...statuses: readonly ('failed' | 'parked' | 'done')[]
): Promise<RunId> {
  const run = await enqueueCrawl(store, statuses.length)
  const worker = await api.registerLiveWorker('shop')
  for (const status of statuses) {
    const claim = await claimOne(store, worker)
    if (status === 'done') await store.finish([claim])
    else await store.fail([{ ...claim, error: 'HTTP 500', becomes: status }])
  }
  await store.settle(run)
  return run
}

const ENDED = /has already ended: it is \w+\./
const LIVE = /only what has ended|is not dead/
const OTHER_LIVE = /already/

/** Refused wherever it is not offered. */
const NOT_OFFERED: Readonly<Record<string, RegExp>> = { acknowledge: /nothing to acknowledge/ }

const SITUATIONS: Readonly<Record<string, RunSituation>> = {
  queued: {
    offered: 'cancel',
    refused: { revert: /nothing was done to it/, delete: LIVE },
    arrange: ({ ctx }) => enqueueCrawl(ctx.store, 2),
  },
  'running, with a worker': {
    offered: 'cancel',
    refused: { retry: /Wait for it/, revert: /nothing was done to it/, delete: LIVE },
    async arrange({ ctx, ...api }) {
      const run = await enqueueCrawl(ctx.store, 2)
      await claimOne(ctx.store, await api.registerLiveWorker('shop'))
      return run
    },
  },
  'running, with failed and parked targets': {
    offered: 'reset-failed unpark acknowledge cancel',
    refused: { revert: /nothing was done to it/, delete: LIVE },
    async arrange({ ctx: { store }, ...api }) {
      const run = await enqueueCrawl(store, 4)
      const worker = await api.registerLiveWorker('shop')
      for (const becomes of ['failed', 'parked'] as const)
        await store.fail([{ ...(await claimOne(store, worker)), error: 'x', becomes }])
      return run
    },
  },
  'running, with a target that an operator parked': {
    offered: 'unpark acknowledge revert cancel',
    refused: { delete: LIVE },
    async arrange(api) {
      const run = await enqueueCrawl(api.ctx.store, 2)
      const [target] = await listTargets(api.ctx.store, run)
      await api.post(`/api/targets/${target!.id}/park`)
      return run
    },
  },
  interrupted: {
    offered: 'cancel',
    refused: { revert: /nothing was done to it/, delete: LIVE },
    async arrange({ ctx: { store }, ...api }) {
      const claim = await beginOne(store, await api.registerLiveWorker('shop'))
      await store.release([await savePage(store, claim)])
      await store.settle(claim.run)
      return claim.run
    },
  },
  succeeded: {
    offered: 'delete',
    refused: {
      cancel: ENDED,
      resume: /nothing of it is left to do/,
      revert: /it succeeded by itself/,
    },
    arrange: (api) => endedCrawl(api, 'done'),
  },
  failed: {
    offered: 'resume reset-failed unpark acknowledge retry delete',
    refused: { cancel: ENDED, revert: /it failed by itself/ },
    arrange: (api) => endedCrawl(api, 'done', 'failed', 'parked'),
  },
  'failed, with parked targets only': {
    offered: 'unpark acknowledge retry delete',
    refused: { cancel: ENDED, resume: /all that is left of it is parked/, revert: /by itself/ },
    arrange: (api) => endedCrawl(api, 'done', 'parked'),
  },
  cancelled: {
    offered: 'resume retry revert delete',
    refused: { cancel: ENDED },
    async arrange(api) {
      const run = await enqueueSingle(api.ctx.store)
      await api.post(`/api/runs/${run}/cancel`)
      return run
    },
  },
  'cancelled and reverted': {
    offered: 'cancel',
    refused: { revert: /nothing was done to it since it was reverted/, delete: LIVE },
    async arrange(api) {
      const run = await enqueueSingle(api.ctx.store)
      await api.post(`/api/runs/${run}/cancel`)
      await api.post(`/api/runs/${run}/revert`)
      return run
    },
  },
  'cancelled, and a newer run of the source is live': {
    offered: 'delete',
    refused: {
      cancel: ENDED,
      resume: OTHER_LIVE,
      retry: OTHER_LIVE,
      revert: /a source has one live run at a time/,
      'reset-failed': OTHER_LIVE,
      unpark: OTHER_LIVE,
    },
    async arrange(api) {
      const run = await enqueueSingle(api.ctx.store)
      await api.post(`/api/runs/${run}/cancel`)
      await enqueueSingle(api.ctx.store)
      return run
    },
  },
  'dead by its age': {
    offered: 'cancel',
    refused: { revert: /nothing was done to it/ },
    async arrange({ ctx }) {
      const run = await enqueueInterrupted(ctx.store, 1)
      await ctx.database.advanceClock(100 * 3_600_000)
      return run
    },
  },
  cleaned: {
    offered: 'resume acknowledge retry revert delete',
    refused: { cancel: ENDED },
    async arrange(api) {
      const run = await SITUATIONS['dead by its age']!.arrange(api)
      await api.post('/api/clean')
      return run
    },
  },
}

const RUN_ACTIONS = [
  'resume',
  'reset-failed',
  'unpark',
  'acknowledge',
  'retry',
  'revert',
  'cancel',
  'delete',
]

/** The dry run of an action; null when it is accepted, else the reason. */
async function refusal({ ctx }: ApiClient, run: RunId, action: string): Promise<string | null> {
  const [method, path] = action === 'delete' ? ['DELETE', ''] : ['POST', `/${action}`]
  const body = { dryRun: true }
  const { status, body: heard } = await ctx.call(method, `/api/runs/${run}${path}`, {
    as: 'admin',
    body,
  })
  return status === 200 ? null : heard.error.message
}

for (const [name, { offered, refused, arrange }] of Object.entries(SITUATIONS)) {
  test(`offered and refused actions: ${name}`, async () => {
    await using api = await createApiClient()
    const run = await arrange(api)
    const detail = await api.get(`/api/runs/${run}`)
    const found = detail.actions.map(({ name }: { name: string }) => name)

    const reasons: Record<string, string | null> = {}
    for (const action of RUN_ACTIONS) reasons[action] = await refusal(api, run, action)
    assert.equal(found.join(' '), offered)
    for (const action of found) assert.equal(reasons[action], null, `${action} is offered`)
    for (const action of RUN_ACTIONS) {
      const expected = refused[action] ?? NOT_OFFERED[offered.includes(action) ? '' : action]
      if (expected) assert.match(reasons[action] ?? 'accepted', expected, action)
      else assert.equal(reasons[action], null, action)
    }
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/core/model/id.ts'
import { open, recoverOnStart, RetryLaterError, UnstuckError } from '../../src/index.ts'
import { createHandler } from '../../src/http.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'

/** A call as JavaScript can make it, whatever the types say. */
type Call = (unstuck: Record<string, (...args: unknown[]) => Promise<unknown>>) => unknown

const ID = newId()
const INVALID_CALLS: Record<string, [Call, RegExp]> = {
  'check, age': [
    (u) => u['check']!('job', { abandonAfter: 'soon' }),
    /check\(\).*abandonAfter must be a duration/,
  ],
  'check, name': [
    (u) => u['check']!('job', { abandonafter: '1h' }),
    /there is no "abandonafter"; did you mean abandonAfter\?/,
  ],
  'begin, once': [
    (u) => u['begin']!('job', { once: 'yes' }),
    /once must be true or false, not "yes"/,
  ],
  'begin, name': [(u) => u['begin']!('job', { onse: true }), /did you mean once\?/],
  'begin, source': [(u) => u['begin']!(7), /A source is a name/],
  'begin, surrogate': [(u) => u['begin']!('a\ud800'), /A source is a name.*lone surrogates/],
  'recover, dryrun': [
    (u) => u['recover']!({ dryrun: true }),
    /there is no "dryrun"; did you mean dryRun\?/,
  ],
  'recover, flag': [
    (u) => u['recover']!({ dryRun: 'false' }),
    /dryRun must be true or false, not "false"/,
  ],
  'recover, list': [(u) => u['recover']!({ sources: 'a' }), /sources must be a list/],
  'recover, number': [(u) => u['recover']!({ olderThan: 60 }), /olderThan must be a duration/],
  'recover, nothing': [(u) => u['recover']!(null), /the options must be an object/],
  'summary, age': [(u) => u['summary']!({ abandonAfter: -1 }), /abandonAfter must be a duration/],
  'clean, run': [(u) => u['clean']!({ abandonAfter: '1h' }), /runs must be an id/],
  'clean, age': [
    (u) => u['clean']!(undefined, { abandonAftr: '1h' }),
    /did you mean abandonAfter\?/,
  ],
  'explain, id': [(u) => u['explain']!(7), /id must be an id/],
  'cancel, because': [(u) => u['cancel']!(ID, { because: 5 }), /because must be text/],
  'cancel, all problems': [
    (u) => u['cancel']!('', { because: '', dryrun: true }),
    /run must be an id.*there is no "dryrun".*because must be text/,
  ],
  'resume, run': [(u) => u['resume']!({ id: "' OR 1=1" }), /run must be an id/],
  'retry, run': [(u) => u['retry']!(undefined), /run is missing: it must be an id/],
  'revert, run': [(u) => u['revert']!([]), /run must be an id.*not a list/],
  'resetFailed, name': [(u) => u['resetFailed']!(ID, { dryRunn: true }), /did you mean dryRun\?/],
  'resetFailed, count': [
    (u) => u['resetFailed']!(ID, { maxAttempts: 2 ** 53 }),
    /maxAttempts must be a whole number/,
  ],
  'park, targets': [(u) => u['park']!([ID, 7]), /targets must be an id.*or a list/],
  'unpark, targets': [
    (u) => u['unpark']!(ID, { targets: ['x'] }),
    /targets must be a list, each of it an id/,
  ],
  'rewind, to': [(u) => u['rewind']!(ID, { to: -1 }), /to must be a whole number from 0/],
  'rewind, next': [
    (u) => u['rewind']!(ID, { to: 0, next: 'x'.repeat(9_000) }),
    /next must be an address of 8192 bytes/,
  ],
  'history, limit': [(u) => u['history']!({ limit: 1e9 }), /limit must be a whole number/],
}

const INVALID_PAGES: [unknown, RegExp][] = [
  [undefined, /the page must be an object with page/],
  [{ page: 0 }, /page must be a whole number from 1/],
  [{ page: '1' }, /page must be a whole number .*, not "1"/],
  ...[Number.NaN, 'x', 2 ** 53, -1, 1.5, Buffer.from('1'), null, 1n].map(
    (skipped): [unknown, RegExp] => [
      { page: 1, skipped },
      /skipped must be a whole number from 0 to 2147483647, not /,
    ],
  ),
  [{ page: 1, pageTarget: Number.POSITIVE_INFINITY }, /pageTarget must be a whole number/],
  [{ page: 1, lastItemId: 5 }, /lastItemId must be text/],
  [{ page: 1, lastItemId: 'x'.repeat(1_025) }, /lastItemId must be text, of 1024 bytes/],
  [{ page: 1, next: '' }, /next must be an address/],
  [{ page: 1, next: 'x'.repeat(8_193) }, /next must be an address.*8192 bytes/],
  [{ page: 1, items: 'none' }, /items must be a list of items, not "none"/],
  [
    { page: 1, items: [{ key: 'a', dat: 1 }] },
    /Item 1 of page 1 cannot be saved: there is no "dat"; did you mean data\?/,
  ],
  [
    { page: 1, items: [{ key: 5, data: 1 }] },
    /Item 1 of page 1 cannot be saved: key must be text, not 5/,
  ],
  [{ page: 1, cursor: () => 1 }, /cursor must be any JSON, not a function/],
  [{ page: 1, cursor: 'x'.repeat(256 * 1_024) }, /The cursor of page 1 is larger than 256 KB/],
  [{ page: 1, curser: 1 }, /there is no "curser"; did you mean cursor\?/],
]

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`S40 every call of the library checks what it is given, and does nothing when it is wrong, ${engine.name}`, async () => {
    await using database = await engine.fresh()
    await using unstuck = await open({ db: database.url, signals: false })
    for (const [name, [call, why]] of Object.entries(INVALID_CALLS)) {
      await assert.rejects(
        Promise.try(() => call(unstuck as never)),
        (error: unknown) => {
          assert.ok(
            error instanceof UnstuckError && error.code === 'E_USAGE',
            `${name}: ${String(error)}`,
          )
          assert.match(error.message, why, name)
          return true
        },
      )
    }
    const run = await unstuck.begin('job')
    for (const [page, why] of INVALID_PAGES) {
      await assert.rejects(run.checkpoint(page as never), (error: unknown) => {
        assert.ok(error instanceof UnstuckError, String(error))
        assert.match(error.code, /^E_(USAGE|PAGE_REJECTED)$/)
        assert.match(error.message, why)
        return true
      })
    }
    await assert.rejects(
      run.checkpoint({ page: 1 }, 'sql' as never),
      /inTransaction must be a function/,
    )
    await assert.rejects(run.progress({ done: -1, total: 2 }), /done must be a whole number from 0/)
    await assert.rejects(run.progress({ done: 1, totl: 2 } as never), /did you mean total\?/)
    await assert.rejects(run.fail('x', { retyr: true } as never), /did you mean retry\?/)
    assert.equal(run.page, 0)
    assert.deepEqual(
      await run.checkpoint({ page: 1, lastItemId: null, pageTarget: null } as never),
      { seq: 1 },
    )
    await run.succeed()
  })
}

test('S40 options of open, createHandler, recoverOnStart and RetryLaterError are checked too', async () => {
  await assert.rejects(open({ dbb: 'sqlite:x' } as never), /open\(\).*did you mean db\?/)
  await assert.rejects(open({ signals: 'no' } as never), /signals must be true or false/)
  const access = (): null => null
  assert.throws(
    () => createHandler({ access, readonly: 'yes' } as never),
    /did you mean readOnly\?/,
  )
  const { error } = await recoverOnStart({ dryrun: true, log: () => {} } as never)
  assert.match(error!.message, /there is no "dryrun"; did you mean dryRun\?/)
  const milliseconds = 5_000 as never
  assert.throws(() => new RetryLaterError(milliseconds), /takes a duration like '5m'/)
})

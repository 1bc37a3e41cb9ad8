import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from './id.ts'
import {
  AlreadyRunningError,
  DatabaseError,
  LeaseLostError,
  messageOf,
  NotFoundError,
  PageBehindError,
  PageRejectedError,
  stackOf,
  StoppingError,
  StoreReadOnlyError,
  StoreUnavailableError,
  UnstuckError,
  UnusableStoreError,
  toError,
  UsageError,
} from './errors.ts'
import { RetryLaterError } from './page-errors.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'

const claim = { target: newId(), epoch: 3, claimId: newId(), worker: newId() }

const errors: [UnstuckError, string, number][] = [
  [new LeaseLostError(claim, 'it is done'), 'E_LEASE_LOST', EXIT.leaseLost],
  [new PageBehindError(claim.target, 2, 5), 'E_PAGE_BEHIND', EXIT.failed],
  [
    new AlreadyRunningError('shop', newId(), { owner: 'x' }),
    'E_ALREADY_RUNNING',
    EXIT.alreadyRunning,
  ],
  [new PageRejectedError('x'), 'E_PAGE_REJECTED', EXIT.failed],
  [new StoreUnavailableError('x'), 'E_DB_UNREACHABLE', EXIT.unreachable],
  [new StoreReadOnlyError('x'), 'E_DB_READ_ONLY', EXIT.unreachable],
  [
    new DatabaseError('E_SCHEMA_NEWER', 'newer', { found: 9, known: 1 }),
    'E_SCHEMA_NEWER',
    EXIT.schema,
  ],
  [new DatabaseError('E_SCHEMA_OLDER', 'older', { found: 9 }), 'E_SCHEMA_OLDER', EXIT.schema],
  [new UnusableStoreError('x'), 'E_DB_UNUSABLE', EXIT.unreachable],
  [new UsageError('x'), 'E_USAGE', EXIT.usage],
  [new NotFoundError('run x', 'Look.'), 'E_NOT_FOUND', EXIT.usage],
  [new StoppingError('x'), 'E_STOPPING', EXIT.resumable],
  [new RetryLaterError('5ms'), 'E_RETRY_LATER', EXIT.failed],
]
test('a run that waits is not called running, and waiting for it is no advice', () => {
  const run = newId()
  const errorFor = (about: ConstructorParameters<typeof AlreadyRunningError>[2]) =>
    new AlreadyRunningError('shop', run, about)
  assert.match(
    errorFor({ status: 'queued', owner: 'last activity 2 s ago' }).message,
    /^shop is already queued: run \w{8}, last activity 2 s ago\. The next worker or start begins it\. More: /,
  )
  const interrupted = errorFor({ status: 'interrupted' })
  assert.match(
    interrupted.message,
    /^shop is already interrupted: run \w{8}\. The next worker or start continues it\. More: `unstuck show \w{8}`$/,
  )
  assert.doesNotMatch(interrupted.message, /Wait/)
  assert.equal(interrupted.data.owner, null)
  assert.match(
    errorFor({ name: 'courses:41' }).message,
    /^shop is already running: run courses:41\. Wait for it; .*`unstuck recover`.* More: `unstuck show courses:41`$/,
  )
  assert.doesNotMatch(errorFor({ owner: 'process 1 on vm is alive' }).message, /recover/)
})

for (const [error, code, exitCode] of errors) {
  test(`${error.name} has the code ${code} and ends with ${exitCode}`, () => {
    assert.ok(error instanceof UnstuckError)
    const isDatabaseError = error instanceof DatabaseError
    assert.equal(error.name, isDatabaseError ? 'DatabaseError' : error.constructor.name)
    assert.ok(UnstuckError.is(error, error.code))
    assert.deepEqual(JSON.parse(JSON.stringify(error)), {
      code,
      message: error.message,
      data: error.data,
    })
    assert.equal(error.code, code)
    assert.equal(exitCodeOf(error), exitCode)
  })
}

test('the codes that scripts use are those of the contract', () => {
  assert.deepEqual(Object.values(EXIT), [0, 1, 2, 3, 5, 6, 7, 9, 75])
})

test('an error describes what happened, to what, and what to do', () => {
  const error = new PageBehindError(claim.target, 2, 5)

  assert.match(error.message, new RegExp(claim.target.slice(-8)))
  assert.match(error.message, /Page 2 .* page 5.* continue from page 6/)
  assert.match(
    new PageBehindError(claim.target, 5, 5).message,
    /Page 5 .* was saved before with other content.* continue from page 6/,
  )
})

test('whatever was thrown has a message', () => {
  assert.equal(messageOf(new Error('x')), 'x')
  assert.equal(messageOf('x'), 'x')
  const refused = new TypeError('fetch failed', { cause: new Error('getaddrinfo ENOTFOUND x') })
  assert.equal(messageOf(refused), 'fetch failed: getaddrinfo ENOTFOUND x')
  const several = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })
  assert.equal(
    messageOf(new TypeError('fetch failed', { cause: several })),
    'fetch failed: ECONNREFUSED',
  )
  assert.equal(messageOf(undefined), 'undefined')
})

test('the message of anything thrown is read without throwing, and is bounded', () => {
  const circle = new Error('a')
  circle.cause = new Error('b', { cause: circle })
  const hostile: unknown[] = [
    circle,
    Object.create(null),
    Symbol('x'),
    Object.assign(new Error(), { message: Symbol('x') }),
    Object.assign(new Error(), { message: { toString: () => 1n } }),
    Object.defineProperty(new Error(), 'message', { get: () => raise() }),
    Object.defineProperty(new UsageError('x'), 'stack', { get: () => raise() }),
    new Proxy(new Error('x'), { get: raise, getPrototypeOf: raise }),
    { toString: raise },
    { toString: null, [Symbol.toPrimitive]: raise },
    () => raise(),
    new Error('x'.repeat(10_000_000)),
    'x'.repeat(10_000_000),
    null,
    undefined,
  ]
  for (const one of hostile) {
    for (const text of [messageOf(one), stackOf(one), toError(one).message, toError(one).stack!]) {
      assert.equal(typeof text, 'string')
      assert.ok(Buffer.byteLength(text) <= 70_000)
    }
  }
  const plain = new UsageError('plain')
  assert.equal(toError(plain), plain)
  assert.equal(messageOf(Object.assign(new Error(), { message: Symbol('x') })), 'Symbol(x)')
})

function raise(): never {
  throw new Error('a getter threw')
}

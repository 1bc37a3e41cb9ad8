import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { RunId } from '../../core/model/id.ts'
import type { Store } from '../../core/store/store.ts'
import { beginOne } from '../../testing/fixtures.ts'
import { operator, type Operator } from '../../testing/operator.ts'
import { unstuck } from '../../testing/unstuck-cli.ts'
import { makeRunFolder } from '../../lib/files/data-folder.ts'
import { OldOutput } from './old-output.ts'

const NEVER = new AbortController().signal

/** So many ended runs with a file each, oldest first. */
async function past(
  { store, present, cwd }: Operator,
  source: string,
  n: number,
): Promise<RunId[]> {
  const worker = await present(source)
  const runs: RunId[] = []
  for (let i = 0; i < n; i++) {
    const begun = await beginOne(store, worker, { source })
    await store.finish([begun])
    await store.settle(begun.run)
    writeFileSync(join(makeRunFolder(cwd, begun.run).outputDir, 'a'), '')
    runs.push(begun.run)
  }
  return runs
}

function oldOutput(store: Store, keep: number): { old: OldOutput; said: string[] } {
  const said: string[] = []
  return { old: new OldOutput({ store, keep, log: (text) => void said.push(text) }), said }
}

const left = (op: Operator): string[] => readdirSync(join(op.cwd, 'runs')).sort()

test('ended runs beyond the newest lose their files; live ones, other sources and all rows do not', async () => {
  await using op = await operator()
  const others = await past(op, 'portal', 3)
  const runs = await past(op, 'shop', 4)
  const { run: live } = await beginOne(op.store, await op.present('shop'), { source: 'shop' })
  makeRunFolder(op.cwd, live)
  const before = await op.dump()
  const { old, said } = oldOutput(op.store, 2)

  await old.remove(op.cwd, 'shop', NEVER)

  assert.deepEqual(left(op), [...others, ...runs.slice(2), live].sort())
  assert.equal(await op.dump(), before)
  assert.deepEqual(said, [])
})

test('an old run that is still open keeps its files', async () => {
  await using op = await operator()
  const runs = await past(op, 'shop', 3)
  const [first = ''] = runs
  await op.database.raw(
    `UPDATE run SET status = 'interrupted', finished_at = NULL WHERE id = '${first}'`,
  )
  const { old } = oldOutput(op.store, 1)
  await old.remove(op.cwd, 'shop', NEVER)
  assert.deepEqual(left(op), [first, runs[2]!].sort())
})

test('with fewer than that nothing goes', async () => {
  await using op = await operator()
  const runs = await past(op, 'shop', 3)
  const { old } = oldOutput(op.store, 3)
  await old.remove(op.cwd, 'shop', NEVER)
  assert.deepEqual(left(op), runs.toSorted())
})

test('many old ones go over several cycles, however many there are, and none is forgotten', async () => {
  await using op = await operator()
  const runs = await past(op, 'shop', 170)
  const { old } = oldOutput(op.store, 5)
  const counts: number[] = []
  for (let cycle = 0; cycle < 4; cycle++) {
    await old.remove(op.cwd, 'shop', NEVER)
    counts.push(left(op).length)
    runs.push(...(await past(op, 'shop', 1)))
  }
  assert.deepEqual(counts, [120, 70, 20, 5])
  await old.remove(op.cwd, 'shop', NEVER)
  assert.deepEqual(left(op), runs.slice(-5).toSorted())
})

test('what cannot be removed is told once and keeps nothing else from going', async () => {
  await using op = await operator()
  const runs = await past(op, 'shop', 4)
  const [plain, older, newer, kept] = runs.map((run) => join(op.cwd, 'runs', run))
  for (const link of [older!, newer!]) {
    rmSync(link, { recursive: true })
    symlinkSync(kept!, link)
  }
  const { old, said } = oldOutput(op.store, 1)

  for (const _ of [1, 2]) await old.remove(op.cwd, 'shop', NEVER)

  assert.equal(said.length, 1, said.join('\n'))
  assert.match(said[0]!, /^output of old runs could not be removed: .* leads somewhere else/)
  assert.deepEqual(
    [plain, older, newer, kept].map((path) => existsSync(path!)),
    [false, true, true, true],
  )
  assert.deepEqual(readdirSync(join(kept!, 'output')), ['a'])
})

test('a database that is away is told once, and no more', async () => {
  await using op = await operator()
  await past(op, 'shop', 2)
  const store = await op.database.open()
  const { old, said } = oldOutput(store, 1)
  await store.close()
  for (const _ of [1, 2]) await old.remove(op.cwd, 'shop', NEVER)
  assert.equal(said.length, 1)
  assert.equal(left(op).length, 2)
})

test('who is to stop does not begin with it', async () => {
  await using op = await operator()
  const runs = await past(op, 'shop', 3)
  const { old } = oldOutput(op.store, 1)
  await old.remove(op.cwd, 'shop', AbortSignal.abort())
  assert.equal(left(op).length, runs.length)
})

test('run --keep-output and work --exec --keep-output: the newest keep theirs, and logs says what became of the others', async () => {
  await using op = await operator()
  const ofSource = async (source: string): Promise<RunId[]> => {
    const { items } = await op.store.runs({ source, limit: 10 })
    return items.map(({ id }) => id)
  }
  const call = (args: readonly string[]) =>
    unstuck([...args, '--db', op.database.url], { cwd: op.cwd })
  const keep = ['--keep-output', '1', '--db', op.database.url]
  for (const _ of [1, 2]) {
    const said = await unstuck(['run', 'shop', ...keep, '--', 'echo', 'hello'], { cwd: op.cwd })
    assert.equal(said.code, 0, said.stderr)
  }
  const [newest = '', oldest = ''] = await ofSource('shop')
  assert.deepEqual(left(op), [newest])
  assert.match((await call(['logs', newest])).stdout, /out hello/)
  const gone = await call(['logs', oldest])
  assert.equal(gone.code, 2)
  assert.match(gone.stderr, /was removed, by `--keep-output` or by hand/)
  assert.equal((await call(['show', oldest])).code, 0)

  const [report = ''] = await past(op, 'report', 1)
  assert.equal((await call(['enqueue', 'report'])).code, 0)
  const work = ['work', '--exec', '--drain', '--source', 'report', ...keep, '--', 'true']
  assert.equal((await unstuck(work, { cwd: op.cwd })).code, 0)
  assert.deepEqual(left(op), [newest, (await ofSource('report'))[0]!].sort())
  assert.ok((await ofSource('report')).includes(report))
})

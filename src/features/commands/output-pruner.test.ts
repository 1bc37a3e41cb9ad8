import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { RunId } from '../../core/model/id.ts'
import type { Store } from '../../core/store/store.ts'
import { beginOne } from '../../testing/fixtures.ts'
import { createCliTestContext, type CliTestContext } from '../../testing/cli-test-context.ts'
import { unstuck } from '../../testing/unstuck-cli.ts'
import { createRunFolder } from '../../lib/files/data-folder.ts'
import { OutputPruner } from './output-pruner.ts'

const NEVER = new AbortController().signal

/** So many ended runs with a file each, oldest first. */
async function createEndedRuns(
  { store, registerLiveWorker, cwd }: CliTestContext,
  source: string,
  n: number,
): Promise<RunId[]> {
  const worker = await registerLiveWorker(source)
  const runs: RunId[] = []
  for (let i = 0; i < n; i++) {
    const begun = await beginOne(store, worker, { source })
    await store.finish([begun])
    await store.settle(begun.run)
    writeFileSync(join(createRunFolder(cwd, begun.run).outputDir, 'a'), '')
    runs.push(begun.run)
  }
  return runs
}

function createOldOutput(store: Store, keep: number): { old: OutputPruner; said: string[] } {
  const said: string[] = []
  return { old: new OutputPruner({ store, keep, log: (text) => void said.push(text) }), said }
}

const remainingFiles = (ctx: CliTestContext): string[] => readdirSync(join(ctx.cwd, 'runs')).sort()

test('ended runs beyond the newest lose their files; live ones, other sources and all rows do not', async () => {
  await using ctx = await createCliTestContext()
  const others = await createEndedRuns(ctx, 'portal', 3)
  const runs = await createEndedRuns(ctx, 'shop', 4)
  const { run: live } = await beginOne(ctx.store, await ctx.registerLiveWorker('shop'), {
    source: 'shop',
  })
  createRunFolder(ctx.cwd, live)
  const before = await ctx.dump()
  const { old, said } = createOldOutput(ctx.store, 2)

  await old.prune(ctx.cwd, 'shop', NEVER)

  assert.deepEqual(remainingFiles(ctx), [...others, ...runs.slice(2), live].sort())
  assert.equal(await ctx.dump(), before)
  assert.deepEqual(said, [])
})

test('an old run that is still open keeps its files', async () => {
  await using ctx = await createCliTestContext()
  const runs = await createEndedRuns(ctx, 'shop', 3)
  const [first = ''] = runs
  await ctx.database.raw(
    `UPDATE run SET status = 'interrupted', finished_at = NULL WHERE id = '${first}'`,
  )
  const { old } = createOldOutput(ctx.store, 1)
  await old.prune(ctx.cwd, 'shop', NEVER)
  assert.deepEqual(remainingFiles(ctx), [first, runs[2]!].sort())
})

test('with fewer than that nothing goes', async () => {
  await using ctx = await createCliTestContext()
  const runs = await createEndedRuns(ctx, 'shop', 3)
  const { old } = createOldOutput(ctx.store, 3)
  await old.prune(ctx.cwd, 'shop', NEVER)
  assert.deepEqual(remainingFiles(ctx), runs.toSorted())
})

test('many old ones go over several cycles, however many there are, and none is forgotten', async () => {
  await using ctx = await createCliTestContext()
  const runs = await createEndedRuns(ctx, 'shop', 170)
  const { old } = createOldOutput(ctx.store, 5)
  const counts: number[] = []
  for (let cycle = 0; cycle < 4; cycle++) {
    await old.prune(ctx.cwd, 'shop', NEVER)
    counts.push(remainingFiles(ctx).length)
    runs.push(...(await createEndedRuns(ctx, 'shop', 1)))
  }
  assert.deepEqual(counts, [120, 70, 20, 5])
  await old.prune(ctx.cwd, 'shop', NEVER)
  assert.deepEqual(remainingFiles(ctx), runs.slice(-5).toSorted())
})

test('a file that cannot be removed is logged once, and the others are removed', async () => {
  await using ctx = await createCliTestContext()
  const runs = await createEndedRuns(ctx, 'shop', 4)
  const [plain, older, newer, kept] = runs.map((run) => join(ctx.cwd, 'runs', run))
  for (const link of [older!, newer!]) {
    rmSync(link, { recursive: true })
    symlinkSync(kept!, link)
  }
  const { old, said } = createOldOutput(ctx.store, 1)

  for (const _ of [1, 2]) await old.prune(ctx.cwd, 'shop', NEVER)

  assert.equal(said.length, 1, said.join('\n'))
  assert.match(said[0]!, /^output of old runs could not be removed: .* leads somewhere else/)
  assert.deepEqual(
    [plain, older, newer, kept].map((path) => existsSync(path!)),
    [false, true, true, true],
  )
  assert.deepEqual(readdirSync(join(kept!, 'output')), ['a'])
})

test('an unreachable database is logged once', async () => {
  await using ctx = await createCliTestContext()
  await createEndedRuns(ctx, 'shop', 2)
  const store = await ctx.database.open()
  const { old, said } = createOldOutput(store, 1)
  await store.close()
  for (const _ of [1, 2]) await old.prune(ctx.cwd, 'shop', NEVER)
  assert.equal(said.length, 1)
  assert.equal(remainingFiles(ctx).length, 2)
})

test('it does not start when stopping', async () => {
  await using ctx = await createCliTestContext()
  const runs = await createEndedRuns(ctx, 'shop', 3)
  const { old } = createOldOutput(ctx.store, 1)
  await old.prune(ctx.cwd, 'shop', AbortSignal.abort())
  assert.equal(remainingFiles(ctx).length, runs.length)
})

test('run --keep-output and work --exec --keep-output: the newest keep theirs, and logs reports the removed ones', async () => {
  await using ctx = await createCliTestContext()
  const ofSource = async (source: string): Promise<RunId[]> => {
    const { items } = await ctx.store.runs({ source, limit: 10 })
    return items.map(({ id }) => id)
  }
  const call = (args: readonly string[]) =>
    unstuck([...args, '--db', ctx.database.url], { cwd: ctx.cwd })
  const keep = ['--keep-output', '1', '--db', ctx.database.url]
  for (const _ of [1, 2]) {
    const said = await unstuck(['run', 'shop', ...keep, '--', 'echo', 'hello'], { cwd: ctx.cwd })
    assert.equal(said.code, 0, said.stderr)
  }
  const [newest = '', oldest = ''] = await ofSource('shop')
  assert.deepEqual(remainingFiles(ctx), [newest])
  assert.match((await call(['logs', newest])).stdout, /out hello/)
  const gone = await call(['logs', oldest])
  assert.equal(gone.code, 2)
  assert.match(gone.stderr, /was removed, by `--keep-output` or by hand/)
  assert.equal((await call(['show', oldest])).code, 0)

  const [report = ''] = await createEndedRuns(ctx, 'report', 1)
  assert.equal((await call(['enqueue', 'report'])).code, 0)
  const work = ['work', '--exec', '--drain', '--source', 'report', ...keep, '--', 'true']
  assert.equal((await unstuck(work, { cwd: ctx.cwd })).code, 0)
  assert.deepEqual(remainingFiles(ctx), [newest, (await ofSource('report'))[0]!].sort())
  assert.ok((await ofSource('report')).includes(report))
})

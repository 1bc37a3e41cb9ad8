import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { emptyProject } from '../../src/testing/empty-project.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const EXAMPLE = readFileSync(file('examples/adopted/unstuck.config.ts'), 'utf8')
const GUIDE = readFileSync(file('docs/guides/from-a-runs-table.md'), 'utf8')

/** What of the output is the same on every machine and in every minute. */
function normalizeOutput(output: string, cwd: string): string {
  return output
    .replaceAll(cwd, '/home/ann/tenders')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\d+ min\b/g, 'N min')
    .trim()
}

test('the guide from a runs table is true: each command, in order, prints what it shows', async () => {
  using project = emptyProject('tenders')
  const cwd = project.path
  execFileSync(process.execPath, [file('examples/adopted/create-runs.ts')], { cwd })
  const config = join(cwd, 'unstuck.config.ts')
  const turnOn = (line: string): void => {
    const text = readFileSync(config, 'utf8')
    assert.ok(text.includes(`// ${line}`), line)
    writeFileSync(config, text.replace(`// ${line}`, line))
  }
  /** What the guide asks for before the command. */
  const edits: Record<string, () => void> = {
    summary: () => {
      assert.ok(GUIDE.includes(`\`\`\`ts\n${readFileSync(config, 'utf8')}\`\`\``))
      turnOn('checkpoint:')
      assert.equal(readFileSync(config, 'utf8'), EXAMPLE)
    },
    'recover --dry-run': () => turnOn("preset: 'production'"),
  }
  const blocks = [...GUIDE.matchAll(/^```console\n\$ npx unstuck (.+)\n([^]*?)^```$/gm)]
  assert.ok(blocks.length > 6)
  for (const [, command, shown] of blocks as unknown as [string, string, string][]) {
    edits[command]?.()
    const { stdout, stderr } = await unstuck(command.split(' '), { cwd })
    assert.equal(stderr, '', command)
    const told = normalizeOutput(stdout, cwd)
    const [start, end] = shown.split(/^…$/m).map((part) => normalizeOutput(part, cwd))
    if (end === undefined) assert.equal(told, start, command)
    else assert.ok(told.startsWith(start!) && told.endsWith(end), `${command}: ${told}`)
  }
  using db = toDisposable(new DatabaseSync(join(cwd, 'app.db')))
  const words = db.prepare('SELECT status FROM runs ORDER BY id').all()
  assert.deepEqual(
    words.map(({ status }) => status),
    ['completed', 'failed', 'failed', 'running', 'failed', 'running'],
  )
})

function toDisposable(db: DatabaseSync): DatabaseSync & Disposable {
  return Object.assign(db, { [Symbol.dispose]: () => db.close() })
}

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { runInThisContext } from 'node:vm'
import * as fc from 'fast-check'
import { HOSTILE_TEXTS } from '../../../testing/hostile-text.ts'
import type { AdoptedOptions } from '../mapping.ts'
import { adoptedText, describeConfig, literal, uniqueName } from './config-text.ts'

test('text in the config is written literally and safe to display', () => {
  const same = (text: string): void => {
    assert.equal(runInThisContext(literal(text)), text)
    assert.doesNotMatch(literal(text), /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  }
  for (const text of HOSTILE_TEXTS) same(text.toWellFormed())
  fc.assert(fc.property(fc.string({ unit: 'binary-ascii' }), same))
  assert.equal(literal('Timeout - Auto-cleaned'), "'Timeout - Auto-cleaned'")
  assert.equal(literal(`it's`), `"it's"`)
})

test('the written mapping equals the proposal', () => {
  const options: AdoptedOptions = {
    table: 'crawl er.runs',
    kind: 'targets',
    columns: { id: 'id', status: 'run status' },
    statuses: { planned: 'new', active: ['at work', `it's "on"`] },
    policy: { lease: '60m' },
  }
  const paths = { checkpoint: 'checkpoint_path', outputDir: 'out dir' }
  const text = adoptedText([
    { name: 'my runs', options, paths, dbCode: "'sqlite:app.db'", cancelledValue: null },
  ])
  const { adopted } = runInThisContext(`({${text}})`) as { adopted: Record<string, AdoptedOptions> }
  const { checkpoint, outputDir, ...said } = adopted['my runs']!
  assert.deepEqual(JSON.parse(JSON.stringify(said)), { ...options, db: 'sqlite:app.db' })
  assert.equal(checkpoint!({ checkpoint_path: 'a/b.json' }), 'a/b.json')
  assert.equal(outputDir!({ 'out dir': null }), '')
})

test('a cancelled status is offered as a comment, and has no effect until enabled', () => {
  const options: AdoptedOptions = {
    table: 'runs',
    columns: { id: 'id', status: 'status' },
    statuses: { active: 'RUNNING' },
  }
  const paths = { checkpoint: null, outputDir: null }
  const text = adoptedText([
    { name: 'runs', options, paths, dbCode: null, cancelledValue: 'CANCELLED' },
  ])
  assert.match(text, /^ {8}\/\/ cancelled: 'CANCELLED', \/\/ enables `unstuck cancel`$/m)
  const { adopted } = runInThisContext(`({${text}})`) as { adopted: Record<string, AdoptedOptions> }
  assert.deepEqual(Object.keys(adopted['runs']!.statuses), ['active'])
})

const NEW = {
  path: join('/project', 'unstuck.config.ts'),
  exists: false,
  db: undefined,
  isReplaced: false,
}
const SERVER = 'postgres://ann:secret@db.example/app'

test('a SQLite file is named relative to the config, and Unstuck keeps one of its own', () => {
  const target = describeConfig('sqlite:/project/data/app.db', NEW, {})
  assert.deepEqual(
    [target.path, target.ownDbCode, target.tablesDbCode],
    [NEW.path, "'sqlite:.unstuck/unstuck.db'", "'sqlite:data/app.db'"],
  )
})

for (const [env, name, isSet] of [
  [{ DATABASE_URL: SERVER, UNSTUCK_DB: SERVER }, 'DATABASE_URL', true],
  [{ APP_DB: SERVER, DATABASE_URL: 'postgres://other/app' }, 'APP_DB', true],
  [{}, 'DATABASE_URL', false],
] as const) {
  test(`a server is named by a variable of the environment: ${name}, with ${Object.keys(env).length} set`, () => {
    const target = describeConfig(SERVER, NEW, env)
    assert.deepEqual([target.ownDbCode, target.tablesDbCode], [`process.env['${name}']`, null])
    assert.deepEqual(target.variable, { name, isSet })
  })
}

test('a table gets a name that no other has', () => {
  assert.equal(uniqueName('crawler.runs', new Set()), 'runs')
  assert.equal(uniqueName('crawler.runs', new Set(['runs'])), 'crawler_runs')
  assert.equal(uniqueName('runs', new Set(['runs'])), 'runs_2')
})

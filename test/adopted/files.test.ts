import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { classifyRuns } from '../../src/core/recovery/clean.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { tenderRuns } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

const HOUR = 60

/** Files that were just written: whether one was looked at shows in when its run was last active. */
function makeFiles(folder: string): { root: string; outside: string } {
  const [root, outside] = [join(folder, 'root'), join(folder, 'outside')]
  for (const path of [join(root, 'own'), join(root, 'deep'), outside])
    mkdirSync(path, { recursive: true })
  writeFileSync(join(root, 'own', 'page.json'), '{"page": 3}')
  writeFileSync(join(outside, 'page.json'), 'secret')
  symlinkSync(outside, join(root, 'linked'))
  symlinkSync('../own', join(root, 'deep', 'inner'))
  utimesSync(join(root, 'own', 'page.json'), minutesAgo(20 * HOUR), minutesAgo(20 * HOUR))
  return { root, outside }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    for (const option of ['checkpoint', 'outputDir'] as const) {
      test(`S13 a path of ${option} that a row leads out of its folder is not looked at`, async () => {
        using folder = temporaryFolder()
        const { root, outside } = makeFiles(folder.path)
        const inside = ['own', join(root, 'own'), 'deep/inner', 'own/../own']
        const leaving = ['../outside', outside, 'linked', 'own/../../outside', '/etc', '..']
        await using ctx = await createAdoptedTestContext(engine, {
          tenders: {
            table: tenderRuns,
            rows: [...inside, ...leaving].map((portal_name) => ({
              portal_name,
              status: 'running',
              started_at: minutesAgo(30 * HOUR),
            })),
            options: {
              filesIn: root,
              [option]: ({ portal_name: at }: Record<string, unknown>) =>
                option === 'checkpoint' ? `${String(at)}/page.json` : String(at),
            },
          },
        })

        const { dead, active, resumable } = await classifyRuns(ctx.operator)

        assert.deepEqual(dead, [])
        const hours = new Map(
          [...active, ...resumable].map(({ run }) => [
            run.source,
            Math.round((Date.now() - run.lastActivityAt) / 3_600_000),
          ]),
        )
        for (const path of inside) assert.equal(hours.get(path), 20, path)
        // Where nothing was looked at, there may be something to go on from: the row is left alone.
        for (const path of leaving) assert.equal(hours.get(path), 30, path)
        const said = ctx.lines.join('\n')
        assert.match(said, new RegExp(`^${option}\\(\\) of row \\d+ of tenders: .* is outside `))
        assert.match(said, /set filesIn to their folder \(and for 5 more rows\)$/)
      })
    }
  })
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../testing/sqlite-engine.ts'
import { loadCrawl } from './load-crawl.ts'

const CRAWL = `
  import { TARGETS } from './targets.ts'
  export default { isCrawl: true, source: TARGETS[0] }
`

for (const [what, manifest, file, renamed] of [
  ['that `npm init -y` made', '{ "type": "commonjs" }', 'crawl.ts', 'crawl.mts'],
  ['whose crawl alone is a module', '{ "type": "commonjs" }', 'crawl.mts', 'targets.mts'],
] as const) {
  test(`a crawl in a package ${what} is refused with both ways to change that`, async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'package.json'), manifest)
    writeFileSync(join(folder.path, 'targets.ts'), "export const TARGETS = ['a']")
    writeFileSync(join(folder.path, file), CRAWL)
    const hint = `has no "type": "module". Add it with \`npm pkg set type=module\`, or name the file ${renamed}.`
    await assert.rejects(loadCrawl(join(folder.path, file)), (error: Error) => {
      assert.ok(
        error.message.endsWith(`${join(folder.path, 'package.json')} ${hint}`),
        error.message,
      )
      return true
    })
  })
}

test('a crawl in a package without a type is loaded, and an export that is missing is named', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'package.json'), '{}')
  writeFileSync(join(folder.path, 'targets.ts'), "export const TARGETS = ['a']")
  writeFileSync(join(folder.path, 'crawl.ts'), CRAWL)
  assert.equal((await loadCrawl(join(folder.path, 'crawl.ts'))).source, 'a')
  const wrong = join(folder.path, 'wrong.ts')
  writeFileSync(wrong, "import { NAMES } from './targets.ts'\nexport default NAMES")
  await assert.rejects(loadCrawl(wrong), /does not provide an export named 'NAMES'\nNode runs it/)
})

import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Tests of whole processes, of browsers and of Crawlee, whose modules keep state, have a process each. */
const SEPARATE = /^(src\/features\/crawlee\/v3|test\/(?!adopted|security|entry-points|interfaces))/
/** Matches what changes the process for the files after it. */
const CHANGES_PROCESS =
  /\bmock\b|process\.(env\S* = |chdir|on\(|exit|umask)|globalThis|registerHooks|^(before|after)(Each)?\(/m
/** So few that the last group to end does not keep the others waiting. */
const GROUP_MAX = 6
/** Files without a process, a database or a mock: all of them are one group. */
const PURE = /^src\/(core\/decide|core\/model|features\/chaos|interfaces\/dashboard|presenters)\//

/**
 * Returns the files with those that can share a process replaced by files in `folder` that import them: to start a
 * process and load the code takes a third of a second of CPU time, more than most files need for their tests.
 */
export function groupTests(files: readonly string[], folder: string): string[] {
  const groups = new Map<string, string[]>()
  const alone: string[] = []
  for (const file of files) {
    if (PURE.test(file)) add('pure', file)
    else if (SEPARATE.test(file) || CHANGES_PROCESS.test(readFileSync(file, 'utf8')))
      alone.push(file)
    else add(dirname(file).split('/').slice(0, 2).join('-'), file)
  }
  const parts = [...groups].flatMap(([name, members]) => {
    const size = name === 'pure' ? members.length : GROUP_MAX
    const count = Math.ceil(members.length / size)
    return Array.from({ length: count }, (_, n) => {
      const path = join(folder, `${name}-${n + 1}.test.mjs`)
      // Each `count`-th file, so that no group gets all the long ones of a folder.
      const imports = members
        .filter((_, at) => at % count === n)
        .map((file) => `await import('${pathToFileURL(file).href}')\n`)
      writeFileSync(path, imports.join(''))
      return path
    })
  })
  return [...parts, ...alone]

  function add(name: string, file: string): void {
    groups.set(name, [...(groups.get(name) ?? []), file])
  }
}

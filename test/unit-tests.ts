import { globSync } from 'node:fs'

/** Folders whose tests use no process, database, environment or mock, so that one process can run them all. */
const FOLDERS = 'src/{core/decide,core/model,features/chaos,interfaces/dashboard,presenters}'

export const UNIT_TESTS = globSync(`${FOLDERS}/**/*.test.ts`).sort()

/** As a test file, this module runs them: a process for each takes 160 ms of CPU time more. */
if (import.meta.main) for (const file of UNIT_TESTS) await import(`../${file}`)

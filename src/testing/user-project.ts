import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './sqlite-engine.ts'
import { crawlRuns, insertRows, createUserTable, tenderRuns, readUserRows } from './user-tables.ts'

const USER_TABLES_MODULE = new URL('./user-tables.ts', import.meta.url).href
const MINUTE_MS = 60_000

/** So many minutes ago. */
export const minutesAgo = (minutes: number): Date => new Date(Date.now() - minutes * MINUTE_MS)

/** A project whose program keeps its runs in two tables of its own, and a config that maps them. */
export type UserProject = Disposable & {
  readonly folder: string
  /** The database of their program. */
  readonly app: string
  /** Where Unstuck's own is; nothing has made it yet. */
  readonly own: string
  tenders(): Promise<Record<string, any>[]>
  courses(): Promise<Record<string, any>[]>
}

/** Tender 1 stands still for 10 minutes, where 5 are allowed; 2 has just begun; 3 has ended. The course has nothing to show for 50 hours. */
export async function createUserProject(extraConfig = ''): Promise<UserProject> {
  const folder = temporaryFolder()
  const app = `sqlite:${join(folder.path, 'app.db')}`
  await createUserTable(app, tenderRuns)
  await createUserTable(app, crawlRuns)
  await insertRows(app, tenderRuns, [
    { id: 1, portal_name: 'portal-a', status: 'running', started_at: minutesAgo(10) },
    { id: 2, portal_name: 'portal-b', status: 'running', started_at: minutesAgo(1) },
    { id: 3, portal_name: 'portal-a', status: 'completed', started_at: minutesAgo(60) },
  ])
  await insertRows(app, crawlRuns, [
    { id: 'c-1', course_id: 'maths', status: 'running', started_at: minutesAgo(3_000) },
  ])
  const config = `
    import { crawlRuns, tenderRuns } from '${USER_TABLES_MODULE}'
    export default {
      db: 'sqlite:own.db',
      preset: 'development',
      adopted: {
        tenders: { ...tenderRuns.options.sqlite, db: 'sqlite:app.db' },
        courses: { ...crawlRuns.options.sqlite, db: 'sqlite:app.db', policy: { onStale: 'keep' } },
      },
      ${extraConfig}
    }
  `
  writeFileSync(join(folder.path, 'unstuck.config.ts'), config)
  return {
    folder: folder.path,
    app,
    own: `sqlite:${join(folder.path, 'own.db')}`,
    tenders: () => readUserRows(app, tenderRuns),
    courses: () => readUserRows(app, crawlRuns),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

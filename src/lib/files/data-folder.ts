import { lstatSync, mkdirSync } from 'node:fs'
import { realpath, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../../core/model/errors.ts'
import { isId, type RunId } from '../../core/model/id.ts'
import { assertTrusted } from '../../core/host/trusted-path.ts'

/** Where a run's files are. */
export type RunFolder = {
  readonly folder: string
  /** For the command's own files: UNSTUCK_OUTPUT_DIR. */
  readonly outputDir: string
  /** What the command printed. */
  readonly logPath: string
}

/**
 * Where journals, tokens and the files of runs go: beside a database file, which was named or checked, else in this
 * project's own folder. Throws when another user could have made that one.
 */
export function dataFolder(address: string, cwd: string): string {
  const folder = dataFolderPath(address, cwd)
  if (!address.startsWith('sqlite:')) assertTrusted(folder, 'data folder')
  return folder
}

/** The same, not checked: nothing in it may be used. */
export function dataFolderPath(address: string, cwd: string): string {
  const isFile = address.startsWith('sqlite:')
  return resolve(cwd, isFile ? dirname(address.slice('sqlite:'.length)) : '.unstuck')
}

/** The places, whether or not anything is there. */
export function runFolder(base: string, run: RunId): RunFolder {
  // Whatever stands in an address bar or a database: only an id becomes a part of a path.
  if (!isId(run)) throw new UsageError(`${JSON.stringify(run)} is not the id of a run.`)
  const folder = join(resolve(base), 'runs', run)
  return { folder, outputDir: join(folder, 'output'), logPath: join(folder, 'output.log') }
}

/** Returns true if a stored path belongs to a log of this run. */
export function isLogPathOf(path: string, run: RunId): boolean {
  const base = dirname(dirname(dirname(path)))
  return isId(run) && path === runFolder(base, run).logPath
}

/** The same places, made for this user alone. */
export function createRunFolder(base: string, run: RunId): RunFolder {
  const paths = runFolder(base, run)
  mkdirSync(paths.outputDir, { recursive: true, mode: 0o700 })
  assertTrusted(paths.outputDir, 'output folder', { within: base })
  for (const path of [paths.folder, paths.outputDir]) {
    if (lstatSync(path).isDirectory()) continue
    throw new UsageError(
      `${path} leads somewhere else: a link stands where the files of a run belong. Remove it and start again.`,
    )
  }
  return paths
}

/** Returns a folder of the data folder if it exists and no link leads elsewhere. */
export async function realFolder(base: string, ...parts: string[]): Promise<string | null> {
  const [root, folder] = await Promise.all(
    [base, join(base, ...parts)].map((path) => realpath(path).catch(() => null)),
  )
  return root && folder && folder === join(root, ...parts) ? folder : null
}

/** Whether anything stands where the files of a run belong. */
export function runFolderExists(base: string, run: RunId): boolean {
  return lstatSync(runFolder(base, run).folder, { throwIfNoEntry: false }) !== undefined
}

/** Takes a run's files away for good. False when there are none. A link is never followed, in its place or inside. */
export async function removeRunFolder(base: string, run: RunId): Promise<boolean> {
  if (!runFolderExists(base, run)) return false
  const { folder } = runFolder(base, run)
  if ((await realpath(folder)) !== join(await realpath(dirname(folder)), run)) {
    throw new UsageError(
      `${folder} leads somewhere else: a link stands where the files of a run belong. Check it, and remove it yourself.`,
    )
  }
  await rm(folder, { recursive: true, force: true })
  return true
}

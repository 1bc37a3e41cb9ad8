import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** A real browser for tests, from a package: nothing has to be installed on the machine. */
export type Chromium = {
  readonly executable: string
  /** What its process needs in its environment: most of the libraries it loads come with it. */
  readonly env: { readonly LD_LIBRARY_PATH: string }
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, '.cache')
const UNPACK = fileURLToPath(new URL('./chromium-unpack.ts', import.meta.url))

/** Why there is none here; false where there is. For a test's `skip`. */
export const noChromium: string | false =
  process.platform === 'linux' && process.arch === 'x64'
    ? false
    : `the browser that comes with the tests is for Linux on x64, and this is ${process.platform} on ${process.arch}`

/** Unpacks it the first time, which takes some seconds and 200 MB; afterwards it is there. */
export async function chromium(): Promise<Chromium> {
  const folder = join(CACHE, `chromium-${versionOf('@sparticuz/chromium')}`)
  if (!existsSync(folder)) await unpackInto(folder)
  const executable = join(folder, 'chromium')
  return { executable, env: { LD_LIBRARY_PATH: join(folder, 'al2023', 'lib') } }
}

/** Whole or not at all, also when several processes ask at once: each unpacks for itself, and the first to be done wins. */
async function unpackInto(folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  const draft = mkdtempSync(`${folder}.`)
  try {
    // The package unpacks into the temporary folder of its process, so it gets a process of its own.
    const child = fork(UNPACK, { env: { ...process.env, TMPDIR: draft }, execArgv: [] })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`Unpacking the browser of the tests failed (exit code ${code})`)
    renameSync(draft, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function versionOf(name: string): string {
  const manifest = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * `npm run sbom`: writes what is installed with the package to `dist/sbom.cdx.json`, in CycloneDX's format.
 * `npm sbom --omit dev` leaves out what a dev dependency needs too (pg, hono), so it gets a lock file without those.
 */

type LockedPackage = {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}
type LockFile = { packages: Record<string, LockedPackage> }

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SBOM_ARGS = ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev', '--package-lock-only']

const folder = mkdtempSync(join(tmpdir(), 'unstuck-sbom-'))
try {
  // npm names the package after its folder.
  const place = join(folder, 'unstuck')
  mkdirSync(place)
  const { devDependencies: _, peerDependencies: __, ...manifest } = read('package.json')
  const lock = read('package-lock.json') as LockFile
  write(join(place, 'package.json'), manifest)
  write(join(place, 'package-lock.json'), { ...lock, packages: installedPackages(lock, manifest) })
  const sbom = execFileSync('npm', SBOM_ARGS, { cwd: place, encoding: 'utf8' })
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  write(join(ROOT, 'dist', 'sbom.cdx.json'), JSON.parse(sbom))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** The entries of a lock file that the package itself needs, by way of any others. */
function installedPackages({ packages }: LockFile, root: LockedPackage): LockFile['packages'] {
  const found: LockFile['packages'] = { '': root }
  const visit = (path: string, { dependencies, optionalDependencies }: LockedPackage): void => {
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const place = placeOf(path, name)
      if (place === undefined || place in found) continue
      found[place] = packages[place]!
      visit(place, packages[place]!)
    }
  }
  /** In the nearest node_modules, as Node finds it. */
  const placeOf = (from: string, name: string): string | undefined => {
    const here = [from, 'node_modules', name].filter(Boolean).join('/')
    if (here in packages || from === '') return here in packages ? here : undefined
    return placeOf(from.slice(0, Math.max(from.lastIndexOf('/node_modules/'), 0)), name)
  }
  visit('', root)
  return found
}

function read(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as Record<string, unknown>
}

function write(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}

import { readFileSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { loadSettings } from '../../../app/config.ts'
import { isLongEnough, readTokens, tokensPath } from '../../../app/tokens.ts'
import type { Database, ResolvedAddress } from '../../../contracts/database.ts'
import type { Secret, Settings } from '../../../contracts/settings.ts'
import { TRUSTED_FOLDERS, untrustedReason, formatMode } from '../../../core/host/trusted-path.ts'
import { messageOf } from '../../../core/model/errors.ts'
import { nearestConfig } from '../../../lib/files/config-file.ts'
import { dataFolderPath } from '../../../lib/files/data-folder.ts'
import { isLoopback } from '../../../lib/http/host-check.ts'
import {
  attempt,
  note,
  ok,
  problem,
  warning,
  firstOf,
  type Finding,
} from '../../../contracts/finding.ts'
import { plural } from '../../../presenters/format.ts'
import { addressFinding, configFinding } from './configuration.ts'
import { checkFeatures } from './run-checks.ts'

/** Checks what docs/reference/security.md recommends, on this machine. Nothing is opened, sent or changed. */
export async function checkSecurity(database: Database, cwd: string): Promise<Finding[]> {
  const config = await attempt(() => loadSettings(cwd))
  const located = await attempt(() => database.locate())
  const address = 'value' in located ? located.value.address : null
  const settings = 'value' in config ? config.value : null
  const secrets = settings ? secretsOf(settings) : []
  const admin = process.env['UNSTUCK_ADMIN_TOKEN']
  const data = dataFolderPath(address ?? '', cwd)
  const own = listOwnFiles(address, data)
  const isNamed =
    'value' in located &&
    located.value.from !== 'default' &&
    located.value.address.startsWith('sqlite:')
  return [
    // Without them some checks are missing.
    ...('error' in config ? [configFinding(config)] : []),
    ...('error' in located ? [addressFinding(located, config)] : []),
    filesFinding(exposedFiles(own)),
    ownersFinding(own, { folder: data, isNamed }),
    configFileFinding(nearestConfig(cwd)),
    compileCacheFinding(process.env['NODE_COMPILE_CACHE']),
    await tokensFinding(tokensPath(data), admin),
    adminTokenFinding(admin),
    writtenSecretsFinding(nearestConfig(cwd), secrets),
    ...('value' in located ? databaseFindings(located.value, process.env) : []),
    ...(settings ? await checkFeatures((one) => one.securityChecks?.(settings, secrets)) : []),
    userFinding(process.getuid?.() ?? null),
  ]
}

/** The secrets that the config file must not contain. */
function secretsOf({ db, secrets }: Pick<Settings, 'db' | 'secrets'>): Secret[] {
  const own = db !== undefined && passwordIn(db) !== null ? [{ setting: 'db', value: db }] : []
  return [...own, ...secrets.filter(({ mayBeWritten }) => mayBeWritten !== true)]
}

/** Returns the password of an address, also if it is not escaped. */
function passwordIn(address: string): string | null {
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^:@/]*:(.+)@/i.exec(address)?.[1]
  return written ?? URL.parse(address)?.searchParams.get('password') ?? null
}

/** A config is code: a user who can write it acts as this one. */
function configFileFinding(path: string | null): Finding {
  const why = path === null ? null : untrustedReason(path)
  if (why === null) return ok('config-file', 'Only its owner can change the config.')
  return problem('config-file', `${why}.`, {
    why: `${path} is code, and would run with your rights. It is not used.`,
    fix: `\`chmod go-w\` or \`chown\` for it and its folders, or ${TRUSTED_FOLDERS} if you trust them.`,
  })
}

function compileCacheFinding(folder: string | undefined): Finding {
  const why = folder ? untrustedReason(folder) : null
  if (why === null) return ok('compile-cache', 'No compile cache that other users can write to.')
  return problem('compile-cache', `NODE_COMPILE_CACHE: ${why}.`, {
    why: 'Node runs the code in it, and another user can change that.',
    fix: 'Unset it, or name a folder that only you can write to.',
  })
}

async function tokensFinding(path: string, admin: string | undefined): Promise<Finding> {
  const tokens = await attempt(async () => readTokens(path))
  if ('error' in tokens) {
    return problem('tokens', messageOf(tokens.error), {
      why: 'Until then no token of the file is valid, and `unstuck serve` does not start.',
      fix: 'Correct the file or its mode, and create new tokens if other users could have changed it.',
    })
  }
  const { length } = tokens.value
  if (length > 0) return ok('tokens', `${plural(length, 'token')}: calls need one.`)
  if (admin) return ok('tokens', 'Calls need the token in UNSTUCK_ADMIN_TOKEN.')
  return note('tokens', 'There is no token.', {
    why: 'While `unstuck serve` runs, every user of this machine can use it with all rights. It is not reachable from other machines.',
    fix: '`unstuck tokens add NAME --role operator` if this machine has other users.',
  })
}

function adminTokenFinding(secret: string | undefined): Finding {
  if (!secret) return ok('admin-token', 'UNSTUCK_ADMIN_TOKEN is not set.')
  const advice = {
    why: 'A caller that guesses it has all rights, from wherever the server can be reached.',
    fix: 'Create a random one: `openssl rand -base64 32`.',
  }
  if (!isLongEnough(secret))
    return problem('admin-token', 'UNSTUCK_ADMIN_TOKEN is too short.', advice)
  const isVaried = new Set(secret).size >= 10
  if (!isVaried) return warning('admin-token', 'UNSTUCK_ADMIN_TOKEN is not random.', advice)
  return ok('admin-token', 'UNSTUCK_ADMIN_TOKEN is long enough.')
}

/** Shorter ones occur in any text. */
const SECRET_MIN = 4

/** Checks that the config file contains no secret: it is committed with the code. */
function writtenSecretsFinding(path: string | null, secrets: readonly Secret[]): Finding {
  const text = path === null ? '' : readFileSync(path, 'utf8')
  const isWritten = (secret: string): boolean =>
    secret.length >= SECRET_MIN && text.includes(secret)
  const written = secrets.filter(({ value }) => isWritten(passwordIn(value) ?? value))
  if (written.length === 0) return ok('written-secrets', 'The config file contains no secret.')
  return warning('written-secrets', `${plural(written.length, 'secret')} in the config file.`, {
    details: written.map(({ setting }) => `${setting} of ${path}`),
    why: 'The file is committed with the code, and every reader of the code gets them.',
    fix: 'Use `process.env.UNSTUCK_…` and set the variable; then replace the secrets that were in the file.',
  })
}

function databaseFindings({ address, from }: ResolvedAddress, env: NodeJS.ProcessEnv): Finding[] {
  if (!/^postgres(ql)?:/.test(address)) return []
  return [tlsFinding(address, env), flagFinding(from === '--db' && passwordIn(address) !== null)]
}

/** Returns the hosts in an address, which may name several. */
function hostsOf(address: string, env: NodeJS.ProcessEnv): string[] {
  const names = /^[a-z]+:\/\/(?:[^/?#]*@)?([^/?#@]*)/.exec(address)?.[1] ?? ''
  return names.split(',').map((name) => {
    const host = name.replace(/:\d*$/, '').replace(/^\[|\]$/g, '')
    return host || env['PGHOST'] || 'localhost'
  })
}

function tlsFinding(address: string, env: NodeJS.ProcessEnv): Finding {
  const isHere = (host: string): boolean =>
    isLoopback(host) || host.startsWith('/') || host.startsWith('%2F')
  if (hostsOf(address, env).every(isHere))
    return ok('database-tls', 'The database is on this machine.')
  const parameters = new URLSearchParams(address.slice(address.indexOf('?') + 1))
  const mode = parameters.get('sslmode') ?? env['PGSSLMODE'] ?? null
  if (mode === 'verify-full')
    return ok(
      'database-tls',
      'The connection to the database uses TLS with a verified certificate.',
    )
  const found =
    mode === null ? 'has no sslmode' : `has sslmode=${mode.slice(0, 20)}, not verify-full`
  return warning('database-tls', `The address of a database on another machine ${found}.`, {
    why: 'Data and password may be sent unencrypted, or to another server.',
    fix: 'Add `?sslmode=verify-full` to the address, and `&sslrootcert=PATH` for your own certificate authority.',
  })
}

function flagFinding(isGivenByFlag: boolean): Finding {
  if (!isGivenByFlag) return ok('flags', 'No password was passed as a flag.')
  return warning('flags', 'The password of the database was passed with --db.', {
    why: 'Every user of this machine can read the arguments of a running command, and shells store them.',
    fix: 'Set UNSTUCK_DB instead.',
  })
}

function userFinding(uid: number | null): Finding {
  if (uid !== 0) return ok('user', 'The process does not run as root.')
  return note('user', 'The process runs as root.', {
    why: 'Crawl modules, the config and wrapped commands run with the same rights.',
    fix: 'Run it as its own user; `USER node` in a container.',
  })
}

/** A file or folder of Unstuck that other users can access. */
type Exposed = { readonly path: string; readonly mode: number }

/** Entries of a folder that are checked. */
const ENTRIES_MAX = 10_000
const OTHERS_READ = 0o044
const OTHERS_WRITE = 0o022
const GROUP_WRITES = 0o020

/** The files and folders that Unstuck creates: database, locks, journals, tokens, output of commands. */
type OwnFiles = { readonly files: readonly string[]; readonly folders: readonly string[] }

function listOwnFiles(address: string | null, data: string): OwnFiles {
  const database = address?.startsWith('sqlite:') ? address.slice('sqlite:'.length) : null
  const folders = [join(data, 'journal'), ...(database === null ? [] : [`${database}-workers`])]
  const runs = list(join(data, 'runs'))
  const files = [
    ...(database === null ? [] : [database, `${database}-wal`, `${database}-shm`]),
    tokensPath(data),
    ...folders.flatMap(list),
    ...runs.flatMap((run) => list(run).filter((path) => /\boutput\.log[^/]*$/.test(path))),
  ]
  return { files, folders: [data, ...folders, ...runs] }
}

/** Returns the files that were created for their owner only and no longer are. */
function exposedFiles({ files, folders }: OwnFiles): Exposed[] {
  return [
    ...files.flatMap((path) => exposed(path, OTHERS_READ | OTHERS_WRITE)),
    ...folders.flatMap((path) => exposed(path, OTHERS_WRITE)),
  ]
}

function exposed(path: string, bits: number): Exposed[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // A link has no mode of its own, and none of these files is a link.
  if (!stats || stats.isSymbolicLink()) return []
  // Many systems give each user a private group with write access.
  const counted = stats.gid === stats.uid ? bits & ~GROUP_WRITES : bits
  if ((stats.mode & counted) === 0) return []
  return [{ path, mode: stats.mode & 0o777 }]
}

function filesFinding(found: readonly Exposed[], platform = process.platform): Finding {
  if (platform === 'win32') {
    return note('files', 'Not checked: this system has no file modes.', {
      why: 'The folder decides which users can read the database and the tokens.',
    })
  }
  if (found.length === 0)
    return ok('files', 'Only their owner can read database, journals and tokens.')
  return problem('files', `${plural(found.length, 'file')} or folders are open to other users.`, {
    details: firstOf(found.map(({ path, mode }) => `${path} (mode ${formatMode(mode)})`)),
    why: 'Other users of this machine can read the data or change it.',
    fix: '`chmod go-rwx` and their names.',
  })
}

/** Checks that no other user can have written files that Unstuck reads. A folder that was named explicitly is trusted. */
function ownersFinding(
  { files, folders }: OwnFiles,
  data: { readonly folder: string; readonly isNamed: boolean },
): Finding {
  const checked = [...folders, ...files].filter((path) => path !== data.folder || !data.isNamed)
  const foreign = new Set(
    checked.flatMap((path) => {
      const isWithin = path !== data.folder && path !== tokensPath(data.folder)
      return untrustedReason(path, isWithin ? { within: data.folder } : {}) ?? []
    }),
  )
  if (foreign.size === 0) return ok('owners', 'No other user can have written these files.')
  return problem('owners', 'Another user can have written files that Unstuck reads.', {
    details: firstOf([...foreign]),
    why: 'Such files are not used: a token, a lock or a database of another user would act in your name.',
    fix: `Change the owner or the mode, or name the folder in ${TRUSTED_FOLDERS} if you trust it.`,
  })
}

function list(folder: string): string[] {
  try {
    const names = readdirSync(folder).slice(0, ENTRIES_MAX)
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}

import { readFileSync } from 'node:fs'
import process from 'node:process'
import { messageOf } from '../../../core/model/errors.ts'
import { dataFolderPath } from '../../../lib/files/data-folder.ts'
import { isInherited } from '../../../features/commands/environment.ts'
import { nearestConfig } from '../../../lib/files/config-file.ts'
import { TRUSTED_FOLDERS, untrustedReason } from '../../../core/host/trusted-path.ts'
import type { Secret, Settings } from '../../../contracts/settings.ts'
import type { Database, ResolvedAddress } from '../../../contracts/database.ts'
import { loadSettings } from '../../../app/config.ts'
import { isLoopback } from '../../../lib/http/host-check.ts'
import { isLongEnough } from '../../../app/token-file.ts'
import { readTokens, tokensPath } from '../../../app/tokens.ts'
import { plural } from '../../../presenters/format.ts'
import { exposedFiles, filesFinding, listOwnFiles, ownersFinding } from './exposure.ts'
import { attempt, note, ok, problem, warning, type Finding } from '../../../presenters/finding.ts'
import { addressFinding, configFinding } from './configuration.ts'
import { FEATURES } from '../../../features/index.ts'

/** What of docs/reference/security.md can be seen on this machine. Nothing is opened, sent or changed. */
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
    // Without them the rest is only half of it.
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
    inheritedSecretsFinding(secrets, process.env),
    ...(settings
      ? (
          await Promise.all(FEATURES.map(async (one) => one.securityChecks?.(settings) ?? []))
        ).flat()
      : []),
    userFinding(process.getuid?.() ?? null),
  ]
}

/** The secrets that the config file must not contain. */
function secretsOf({ db, secrets }: Pick<Settings, 'db' | 'secrets'>): Secret[] {
  const own = db !== undefined && passwordIn(db) !== null ? [{ setting: 'db', value: db }] : []
  return [...own, ...secrets.filter(({ mayBeWritten }) => mayBeWritten !== true)]
}

/** Also of addresses whose password is not escaped as it should be. */
function passwordIn(address: string): string | null {
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^:@/]*:(.+)@/i.exec(address)?.[1]
  return written ?? URL.parse(address)?.searchParams.get('password') ?? null
}

/** A config is code: a user who can write it acts as this one. */
function configFileFinding(path: string | null): Finding {
  const why = path === null ? null : untrustedReason(path)
  if (why === null) return ok('config-file', 'Nobody but its owner can change the config.')
  return problem('config-file', `${why}.`, {
    why: `${path} is code, and would run with the rights of whoever calls unstuck. It is not used.`,
    mend: `\`chmod go-w\` or \`chown\` for it and its folders, or ${TRUSTED_FOLDERS} if you trust them.`,
  })
}

/** Set by the user, it counts for unstuck as for every Node program. */
function compileCacheFinding(folder: string | undefined): Finding {
  const why = folder ? untrustedReason(folder) : null
  if (why === null) return ok('compile-cache', 'No compile cache that others can write to.')
  return problem('compile-cache', `NODE_COMPILE_CACHE: ${why}.`, {
    why: 'Node runs what it finds there: another user can put code in.',
    mend: 'Unset it, or name a folder that only you can write to.',
  })
}

async function tokensFinding(path: string, admin: string | undefined): Promise<Finding> {
  const tokens = await attempt(async () => readTokens(path))
  if ('error' in tokens) {
    return problem('tokens', messageOf(tokens.error), {
      why: 'As long as it is so, no token of the file lets anybody in, and `unstuck serve` does not start.',
      mend: 'Close or mend the file, and make new tokens if others could have changed it.',
    })
  }
  const { length } = tokens.value
  if (length > 0) return ok('tokens', `${plural(length, 'token')}: who has none is not let in.`)
  if (admin) return ok('tokens', 'The token of UNSTUCK_ADMIN_TOKEN: who has none is not let in.')
  return note('tokens', 'There is no token.', {
    why: 'While `unstuck serve` runs, everybody who is logged in to this machine may do everything with it. Others cannot reach it.',
    mend: '`unstuck tokens add NAME --role operator` if others work on this machine.',
  })
}

function adminTokenFinding(secret: string | undefined): Finding {
  if (!secret) return ok('admin-token', 'UNSTUCK_ADMIN_TOKEN is not set.')
  const advice = {
    why: 'Whoever guesses it may do everything, from wherever the server can be reached.',
    mend: 'Make one by chance: `openssl rand -base64 32`.',
  }
  if (!isLongEnough(secret))
    return problem('admin-token', 'UNSTUCK_ADMIN_TOKEN is too short.', advice)
  const isVaried = new Set(secret).size >= 10
  if (!isVaried) return warning('admin-token', 'UNSTUCK_ADMIN_TOKEN repeats itself.', advice)
  return ok('admin-token', 'UNSTUCK_ADMIN_TOKEN is long.')
}

/** Shorter ones stand in any text. */
const SECRET_MIN = 4

/** A secret that stands in the file itself goes where the file goes: into the repository, to its readers. */
function writtenSecretsFinding(path: string | null, secrets: readonly Secret[]): Finding {
  const text = path === null ? '' : readFileSync(path, 'utf8')
  const isWritten = (secret: string): boolean =>
    secret.length >= SECRET_MIN && text.includes(secret)
  const written = secrets.filter(({ value }) => isWritten(passwordIn(value) ?? value))
  if (written.length === 0) return ok('written-secrets', 'No secret stands in the config itself.')
  return warning('written-secrets', `${plural(written.length, 'secret')} in the config itself.`, {
    details: written.map(({ setting }) => `${setting} of ${path}`),
    why: 'The file is kept with the code, and whoever can read that has them.',
    mend: 'Write `process.env.UNSTUCK_…` there and set the variable; then change the secrets that were in the file.',
  })
}

/** The way to the database. */
function databaseFindings({ address, from }: ResolvedAddress, env: NodeJS.ProcessEnv): Finding[] {
  if (!/^postgres(ql)?:/.test(address)) return []
  return [tlsFinding(address, env), flagFinding(from === '--db' && passwordIn(address) !== null)]
}

/** An address may name several. */
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
    return ok('database-tls', 'The way to the database is TLS, with a certificate that is checked.')
  const found =
    mode === null ? 'names no sslmode' : `says sslmode=${mode.slice(0, 20)}, not verify-full`
  return warning('database-tls', `The address of a database on another machine ${found}.`, {
    why: 'What is sent may go in plain, or to whoever answers in its place: the password too.',
    mend: 'Add `?sslmode=verify-full` to the address, and `&sslrootcert=PATH` for an authority of your own.',
  })
}

function flagFinding(isGivenByFlag: boolean): Finding {
  if (!isGivenByFlag) return ok('flags', 'No password was given by a flag.')
  return warning('flags', 'The password of the database was given with --db.', {
    why: 'Everybody on this machine can see the words of a command while it runs, and a shell keeps them.',
    mend: 'Set UNSTUCK_DB instead.',
  })
}

/** Variables under names of the user's own reach wrapped commands, as they should: but not with our secrets in them. */
function inheritedSecretsFinding(secrets: readonly Secret[], env: NodeJS.ProcessEnv): Finding {
  const values = new Set(secrets.map(({ value }) => value))
  const names = Object.keys(env).filter((name) => values.has(env[name] ?? '') && isInherited(name))
  if (names.length === 0) return ok('handed-on', 'No secret of the config reaches commands.')
  return warning('handed-on', `${plural(names.length, 'variable')} with secrets reach commands.`, {
    details: names,
    why: 'What `unstuck run` and `work --exec` start gets the environment, less what is unstuck’s own by its name.',
    mend: 'Name them UNSTUCK_…_WEBHOOK, …_SECRET, …_SMTP, …_PASSWORD or …_TOKEN; UNSTUCK_DB for the database.',
  })
}

function userFinding(uid: number | null): Finding {
  if (uid !== 0) return ok('user', 'It does not run as root.')
  return note('user', 'It runs as root.', {
    why: 'Crawl modules, the config and wrapped commands run with the same rights.',
    mend: 'Run it as a user of its own; `USER node` in a container.',
  })
}

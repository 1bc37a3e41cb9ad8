import { messageOf, UnstuckError } from '../core/model/errors.ts'
import { EXIT, exitCodeOf as errorExitCode } from '../core/model/exit-codes.ts'

/** The result of a check that may throw. */
export type Attempt<T> = { readonly value: T } | { readonly error: unknown }

export async function attempt<T>(check: () => Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await check() }
  } catch (error) {
    return { error }
  }
}

/** `note`: for information. `warning`: works, but needs attention. `problem`: a guarantee or the work is at risk. */
export const RESULTS = ['ok', 'note', 'warning', 'problem'] as const
export type Result = (typeof RESULTS)[number]

/** What one check of `unstuck doctor` found. */
export type Finding = {
  /** The name of the check: stable, for scripts. */
  readonly check: string
  readonly result: Result
  /** One sentence. */
  readonly found: string
  /** The facts behind it. */
  readonly details: readonly string[]
  /** Why it matters; null for `ok`. */
  readonly why: string | null
  /** The command or setting that fixes it; null if there is nothing to fix. */
  readonly fix: string | null
  /** A more precise exit code than 3: invalid config, unreachable database, newer schema. */
  readonly exitCode: number | null
}

type Advice = {
  readonly why: string
  readonly fix?: string | null
  readonly details?: readonly string[]
  readonly exitCode?: number
}

export function ok(check: string, found: string): Finding {
  return { check, result: 'ok', found, details: [], why: null, fix: null, exitCode: null }
}

export const note = (check: string, found: string, advice: Advice): Finding =>
  finding('note', check, found, advice)
export const warning = (check: string, found: string, advice: Advice): Finding =>
  finding('warning', check, found, advice)
export const problem = (check: string, found: string, advice: Advice): Finding =>
  finding('problem', check, found, advice)

function finding(
  result: Result,
  check: string,
  found: string,
  { why, fix = null, details = [], exitCode }: Advice,
): Finding {
  return { check, result, found, details, why, fix, exitCode: exitCode ?? null }
}

/** Returns the finding of a check that failed with an error; the exit code is that of the error. */
export function fromError(check: string, error: unknown, advice: Advice): Finding {
  const [found = '', ...lines] = messageOf(error).split('\n')
  const details = lines.map((line) => line.replace(/^- /, ''))
  return finding('problem', check, found, {
    details,
    ...(error instanceof UnstuckError && { exitCode: errorExitCode(error) }),
    ...advice,
  })
}

/** Without a valid config or a database most checks cannot run, so these codes come first. */
const EXIT_CODE_PRIORITY = [EXIT.usage, EXIT.unreachable, EXIT.schema]

export function exitCodeOf(findings: readonly Finding[]): number {
  const asked = findings.map(({ exitCode }) => exitCode)
  const first = EXIT_CODE_PRIORITY.find((code) => asked.includes(code))
  if (first !== undefined) return first
  return ['warning', 'problem'].includes(worst(findings)) ? EXIT.needsAttention : EXIT.done
}

export function worst(findings: readonly Finding[]): Result {
  const place = Math.max(0, ...findings.map(({ result }) => RESULTS.indexOf(result)))
  return RESULTS[place]!
}

/** Returns the first entries of a list, and how many more there are. */
export function firstOf(all: readonly string[], few = 5): string[] {
  return all.length <= few ? [...all] : [...all.slice(0, few), `and ${all.length - few} more`]
}

import type { Inspection } from '../inspection/store/store.ts'
import { guaranteeFindings } from '../inspection/guarantees.ts'
import { plural } from '../../presenters/format.ts'
import type { Differences, Outcome } from './compare.ts'
import type { InjectionResult } from './runner.ts'
import { makeProblem, type Problem } from './trial.ts'

/** The results of a trial. */
export type ReportInput = {
  readonly reference: Outcome
  readonly referenceMs: number
  readonly result: Outcome
  readonly differences: Differences
  readonly injection: InjectionResult
  readonly killsAsked: number | null
  readonly inspection: Inspection
  /** Processes that had not ended long after the command had. */
  readonly leftBehind: number
}

const EXAMPLES_MAX = 10

/** The shape of `--json`. It only grows. */
export type Report = ReturnType<typeof makeReport>

/** Makes the report. Reads only its arguments. */
export function makeReport(input: ReportInput) {
  const { differences: found, injection, reference, result } = input
  const problems = findProblems(input)
  const hasOutput = reference.output !== null
  const outputLost = found.outputLost.length
  const outputDoubled = found.outputDoubled.length + found.outputUnexpected.length
  const itemsDoubled = found.itemsUnexpected.length
  return {
    ok: problems.length === 0,
    /** What is wrong; empty when all is well. */
    problems,
    /** What limits the result, in sentences. */
    warnings: findWarnings(input),
    kills: injection.kills.length,
    /** Null: as many as fit into the time. */
    killsAsked: input.killsAsked,
    killsBySignal: countBy(injection.kills.map(({ signal }) => signal)),
    starts: injection.starts,
    lost: found.pagesLost + found.itemsLost.length + outputLost,
    doubled: found.pagesBeyond + itemsDoubled + outputDoubled,
    pagesLost: found.pagesLost,
    pagesDoubled: found.pagesBeyond,
    itemsLost: found.itemsLost.length,
    itemsDoubled,
    itemsDifferent: found.itemsDifferent.length,
    /** Of the command's own output; null without one. */
    outputLost: hasOutput ? outputLost : null,
    outputDoubled: hasOutput ? outputDoubled : null,
    lateWritesRefused: result.runs.reduce((sum, { refused }) => sum + refused, 0),
    /** How often recovery released a target of a dead worker. */
    recoveries: Object.values(injection.recoveries).reduce((sum, n) => sum + n, 0),
    recoveriesByAction: injection.recoveries,
    ...recoveryTimes(injection.reclaimedMs),
    reference: figuresOf(reference, input.referenceMs),
    result: figuresOf(result, injection.tookMs),
    withinMs: injection.withinMs,
  }
}

/** From a kill to the next claim, including the restart of the command; null when nothing was held. */
export function recoveryTimes(reclaimedMs: readonly number[]) {
  const times = reclaimedMs.toSorted((a, b) => a - b)
  return { medianRecoveryMs: median(times), slowestRecoveryMs: times.at(-1) ?? null }
}

/** The figures of one phase. */
export type Figures = ReturnType<typeof figuresOf>

function figuresOf({ runs, targets, items }: Outcome, ms: number) {
  return {
    ms: Math.round(ms),
    runs: runs.length,
    targets: targets.filter(({ status }) => status === 'done').length,
    pages: runs.reduce((sum, { pages }) => sum + pages, 0),
    items: items.length,
  }
}

function findProblems(input: ReportInput): Problem[] {
  const { differences: found, injection, leftBehind } = input
  // The command never came to its end, so differences are expected and have other causes than those below.
  if (injection.problem) return [injection.problem]
  const problems: Problem[] = []
  if (injection.kills.length === 0) problems.push(NO_KILLS)
  for (const [what, message, hint, key] of PROBLEM_KINDS) {
    const list = found[key]
    if (list.length > 0) {
      const examples = list.slice(0, EXAMPLES_MAX)
      problems.push({ what, message: message(list.length), count: list.length, examples, hint })
    }
  }
  problems.push(...guaranteeProblems(input.inspection))
  if (leftBehind > 0) {
    const processes = plural(leftBehind, 'process', 'processes')
    problems.push(
      makeProblem(
        'left-behind',
        `${processes} of the command still ran 30 s after it had ended.`,
        'Processes that it starts, such as a browser, must end with it.',
      ),
    )
  }
  return problems
}

const NO_KILLS = makeProblem(
  'no-kills',
  'The command was done before the first kill was due, so nothing was tested.',
  'Crawl more pages, or set a shorter --within.',
)

const ONE_CHECKPOINT =
  'A page and its items must be saved in one checkpoint. Look for a checkpoint that does not contain the items of its page.'
const PARKED_BY_KILLS =
  'A target is parked when several workers died on it without a page in between. Use fewer --kills or a longer --within.'
const DATA_DIFFERS =
  'A site that changes between requests has the same effect: crawl a fixed copy of it, or pass --ignore-data.'

type DifferenceList = Exclude<keyof Differences, 'pagesLost' | 'pagesBeyond'>
type ProblemKind = readonly [
  what: string,
  message: (count: number) => string,
  hint: string | null,
  list: DifferenceList,
]

const PROBLEM_KINDS: readonly ProblemKind[] = [
  [
    'items-lost',
    (n) => `${plural(n, 'item')} of the reference ${isAre(n)} missing.`,
    ONE_CHECKPOINT,
    'itemsLost',
  ],
  [
    'items-unexpected',
    (n) => `${plural(n, 'item')} ${isAre(n)} not in the reference.`,
    'The same item under a second key is a duplicate: a key must not depend on the time or the worker.',
    'itemsUnexpected',
  ],
  [
    'items-different',
    (n) => `${plural(n, 'item')} ${n === 1 ? 'has' : 'have'} other data than in the reference.`,
    DATA_DIFFERS,
    'itemsDifferent',
  ],
  [
    'targets-lost',
    (n) => `${plural(n, 'target')} of the reference ${isAre(n)} missing.`,
    'targets() must yield the same targets again after it was interrupted.',
    'targetsLost',
  ],
  [
    'targets-unexpected',
    (n) => `${plural(n, 'target')} ${isAre(n)} not in the reference.`,
    'targets() must yield the same keys on each call.',
    'targetsUnexpected',
  ],
  [
    'pages-lost',
    (n) => `${plural(n, 'target')} ended at an earlier page than in the reference.`,
    'It ended too early: check the cursor from which it resumes after a kill.',
    'targetsShort',
  ],
  [
    'pages-doubled',
    (n) => `${plural(n, 'target')} ended at a later page than in the reference.`,
    'Pages were saved twice under new numbers: check the cursor from which it resumes after a kill.',
    'targetsBeyond',
  ],
  [
    'targets-unfinished',
    (n) => `${plural(n, 'target')} did not end as in the reference.`,
    PARKED_BY_KILLS,
    'targetsOpen',
  ],
  [
    'runs-unfinished',
    (n) => `${plural(n, 'run')} did not succeed.`,
    'Its workers died several times without a page in between. If its log shows no other cause than the kills, save pages more often or pass fewer --kills.',
    'runsOpen',
  ],
  [
    'output-lost',
    (n) => `${plural(n, 'line')} of the output ${isAre(n)} missing.`,
    'A line that is written after the checkpoint of its page is lost if the command dies in between.',
    'outputLost',
  ],
  [
    'output-doubled',
    (n) => `${plural(n, 'key')} ${isAre(n)} in the output more often than in the reference.`,
    "A line that is written before the checkpoint of its page is written again if the command dies in between. Write it in the page's transaction, or with a unique key.",
    'outputDoubled',
  ],
  [
    'output-unexpected',
    (n) => `${plural(n, 'line')} of the output ${isAre(n)} not in the reference.`,
    'A line that a kill cut off is one of these.',
    'outputUnexpected',
  ],
]

function isAre(count: number): string {
  return count === 1 ? 'is' : 'are'
}

/** Returns what `unstuck doctor` finds about the guarantees. */
function guaranteeProblems(inspection: Inspection): Problem[] {
  return guaranteeFindings(inspection)
    .filter(({ result }) => result !== 'ok')
    .map(({ check, found, details, why }) => ({
      what: check,
      message: found,
      count: Math.max(1, details.length),
      examples: details,
      hint: why,
    }))
}

function findWarnings({ injection, killsAsked, reference, result }: ReportInput): string[] {
  const warnings: string[] = []
  if (injection.isDoneEarly && injection.kills.length > 0) {
    const asked = killsAsked === null ? 'the time was up' : `all ${killsAsked} kills were injected`
    warnings.push(
      `The command was done before ${asked}: the result is for ${plural(injection.kills.length, 'kill')}. A longer crawl or a shorter --within allows more.`,
    )
  }
  if (injection.forced > 0) {
    warnings.push(
      `${plural(injection.forced, 'time')} the command did not stop within 30 s of a signal, and was killed.`,
    )
  }
  const begunAgain = result.runs.filter(({ retryOf }) => retryOf === null).length
  if (begunAgain > reference.runs.length) {
    warnings.push(
      `There are ${plural(begunAgain, 'run')} instead of ${reference.runs.length}: a restart after the work was done began a new run.`,
    )
  }
  return warnings
}

function countBy(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

function median(sorted: readonly number[]): number | null {
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return low === undefined || high === undefined ? null : Math.round((low + high) / 2)
}

import type { AdoptedOptions } from '../../../features/adopted/mapping.ts'
import type { Paths } from '../../../features/adopted/wizard/propose.ts'
import { safeJson } from '../../../core/events/safe-text.ts'

/** One table, as it goes into a config. */
export type ConfigEntry = {
  readonly name: string
  readonly options: AdoptedOptions
  readonly paths: Paths
  /** Where the table is, as code; null: in Unstuck's own database. */
  readonly dbCode: string | null
  /** Offered as a word to be turned on; null: none is. */
  readonly cancelledValue: string | null
}

/** A whole config with these tables and nothing else. `db`: where Unstuck's own books are, as code. */
export function configText(entries: readonly ConfigEntry[], dbCode: string): string {
  return `// Settings of Unstuck. All there are, explained: node_modules/unstuck/docs/configuration.md
import { defineConfig } from 'unstuck'

export default defineConfig({
  // Unstuck's own books: who did what to which row, and how it is undone. Your tables stay as they are.
  db: ${dbCode},

  // With a preset, rows that nobody is known to work on are failed when they have not moved for a while: 5 minutes
  // in 'development', 15 in 'staging', 30 in 'production'. Without one they are shown, and left alone.
  // preset: 'production',

${adoptedText(entries)}
})
`
}

/** The part of a config that is about these tables. */
export function adoptedText(entries: readonly ConfigEntry[]): string {
  return ['  adopted: {', ...entries.flatMap(entryLines), '  },'].join('\n')
}

function entryLines({ name, options, paths, dbCode, cancelledValue }: ConfigEntry): string[] {
  const { table, kind, columns, statuses, policy } = options
  const lines = [
    `table: ${literal(table)},`,
    ...(kind === undefined ? [] : [`kind: ${literal(kind)},`]),
    ...(dbCode === null ? [] : [`db: ${dbCode},`]),
    'columns: {',
    ...Object.entries(columns).map(([field, column]) => `  ${field}: ${literal(column)},`),
    '},',
    'statuses: {',
    ...Object.entries(statuses).map(([meaning, words]) => `  ${meaning}: ${valuesText(words)},`),
    ...(cancelledValue === null
      ? []
      : [
          `  // cancelled: ${literal(cancelledValue)}, // to end a row by hand: \`unstuck cancel\``,
        ]),
    '},',
    ...pathLines(options, paths),
    ...(policy?.lease === undefined ? [] : leaseLines(policy.lease)),
  ]
  return [`    ${keyText(name)}: {`, ...lines.map((line) => `      ${line}`), '    },']
}

function pathLines({ kind, columns }: AdoptedOptions, { checkpoint, outputDir }: Paths): string[] {
  const from = (column: string): string => `(row) => String(row[${literal(column)}] ?? '')`
  const hasCheckpoint = checkpoint !== null || columns.checkpoint !== undefined
  const hint = [
    '// If your runs leave checkpoint files: one with something in it can be gone on from.',
    `// checkpoint: (row) => \`checkpoints/\${row[${literal(columns.id)}]}.json\`,`,
  ]
  return [
    ...(checkpoint === null ? [] : [`checkpoint: ${from(checkpoint)},`]),
    ...(outputDir === null ? [] : [`outputDir: ${from(outputDir)},`]),
    ...(checkpoint === null && outputDir === null ? [] : FILES_HINT),
    ...(hasCheckpoint || kind === 'targets' ? [] : hint),
  ]
}

const FILES_HINT = [
  '// Paths that lead out of this folder are not read. If your files are elsewhere:',
  "// filesIn: '/data/crawls',",
]

function leaseLines(lease: string | number): string[] {
  return [
    '// A beat older than this is a lost worker. Several times the pause between two beats is right.',
    `policy: { lease: ${literal(String(lease))} },`,
  ]
}

function valuesText(values: string | readonly string[]): string {
  return typeof values === 'string' ? literal(values) : `[${values.map(literal).join(', ')}]`
}

function keyText(name: string): string {
  return /^[a-z_$][\w$]*$/i.test(name) ? name : literal(name)
}

/** A text as code: JSON, in which nothing can act, and in the quotes of the house where there is nothing to escape. */
export function literal(text: string): string {
  const json = safeJson(text)
  return /['\\]/.test(json) ? json : `'${json.slice(1, -1)}'`
}

import { basename, dirname, extname, relative } from 'node:path'
import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import { findConfig, configNameFor } from '../../../lib/files/config-file.ts'
import {
  adviceFor,
  detectProject,
  EXAMPLE_SOURCE,
  type Advice,
  type Project,
} from '../init/project.ts'
import { readCommand, type WrappedCommand } from '../init/command.ts'
import { commandSupervisor } from '../init/command-supervisors.ts'
import {
  renderTemplate,
  writeNewFile,
  updateGitignore,
  ALREADY_EXISTS,
  type WriteOptions,
  type FileResult,
} from '../init/write.ts'
import {
  readSupervisors,
  supervisor,
  SUPERVISOR_NAMES,
  type Supervisor,
} from '../init/supervisors.ts'
import { shellWord } from '../../../core/model/shell-command.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { pad, widthOf } from '../../../lib/terminal/width.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, defaultsTo, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck init                            # config and an example crawl that runs as it is',
    'unstuck init --for pm2                  # a file to run your crawl.ts under PM2',
    'unstuck init --for docker kubernetes --module src/crawl.ts --workers 4',
    "unstuck init --for systemd --command 'python scraper.py' --interval 1h   # any command",
  ],
  args: { folder: argument.optional('where to write; default: here') },
  options: {
    for: {
      ...option.texts('NAME', `files for ${SUPERVISOR_NAMES.join(', ')}`),
      choices: SUPERVISOR_NAMES,
    },
    module: defaultsTo('crawl.ts', option.text('FILE', "the crawl's file, relative to FOLDER")),
    workers: SHARED_OPTIONS.workers(2),
    command: option.text('COMMAND', 'files that run this with `unstuck run`, instead of a crawl'),
    source: defaultsTo("the name of the command's script", SHARED_OPTIONS.source),
    interval: defaultsTo('10m', SHARED_OPTIONS.interval),
    force: SHARED_OPTIONS.force,
    dryRun: SHARED_OPTIONS.dryRun,
  },

  async run({ args, options }) {
    const names = readSupervisors(options.for)
    const command = commandOf(options, args.folder ?? '.')
    const place = detectProject({
      folder: args.folder ?? '.',
      module: options.module ?? 'crawl.ts',
      workers: options.workers,
      source: command?.source,
    })
    const wanted = names.map((name) =>
      command ? commandSupervisor(name, command) : supervisor(name),
    )
    // With an existing crawl, --for writes only the files it names. Without a crawl there would be nothing to run.
    const starts = command === null && (wanted.length === 0 || !place.hasModule)
    const writesExample = starts && (options.force || !place.hasModule)
    if (writesExample) rejectJavaScript(place)
    // All are made before the first is written: one may refuse the command.
    const made = wanted.flatMap((one) => one.files(place.facts))
    const files = [
      ...(starts ? writeStarter(place, options) : []),
      ...made.map((file) => writeNewFile(place.facts.folder, file, options)),
    ]
    const advice = adviceFor(place, names, command)
    const source = writesExample ? EXAMPLE_SOURCE : place.source
    const next = nextCommands({ ...place, source }, wanted, { starts, advice })
    const { folder } = place.facts
    const { dryRun } = options
    return {
      data: {
        folder,
        dryRun,
        files: files.map(({ path, action }) => ({ path, action })),
        notes: advice.map(({ note }) => note),
        next,
      },
      print: (writer) => print(writer, { folder, dryRun, files, advice, next }),
    }
  },
})

function writeStarter(
  { facts: { folder, module } }: Project,
  writeOptions: WriteOptions,
): FileResult[] {
  const crawl = {
    path: module,
    text: renderTemplate('crawl.ts', { MODULE: shellQuote(module) }),
    about: 'an example that runs as it is',
  }
  return [
    writeConfig(folder, writeOptions),
    writeNewFile(folder, crawl, writeOptions),
    updateGitignore(folder, writeOptions),
  ]
}

/** A config in a parent folder applies too: a second one would mean a second database. */
function writeConfig(folder: string, writeOptions: WriteOptions): FileResult {
  const found = findConfig(folder)
  const isHere = found !== null && dirname(found) === folder
  if (found !== null && !writeOptions.force) {
    const about = isHere ? ALREADY_EXISTS : `${ALREADY_EXISTS}, and counts for this folder`
    return { path: relative(folder, found), action: 'kept', about }
  }
  const path = isHere ? basename(found) : configNameFor(folder)
  return writeNewFile(
    folder,
    { path, text: renderTemplate('unstuck.config.ts'), about: 'settings, explained' },
    writeOptions,
  )
}

type CommandFlags = {
  readonly for: readonly string[]
  readonly command: string | undefined
  readonly source: string | undefined
  readonly interval: number | undefined
  readonly module: string | undefined
}

const INTERVAL_MS = 10 * 60_000

function commandOf(
  { command, source, interval, ...options }: CommandFlags,
  folder: string,
): WrappedCommand | null {
  if (command === undefined) {
    if (source === undefined && interval === undefined) return null
    throw new UsageError('--source and --interval go with --command.')
  }
  if (options.for.length === 0)
    throw new UsageError('--command goes with --for: it writes files for a process manager.')
  if (options.module !== undefined)
    throw new UsageError('Use either --module or --command: the files run a crawl or a command.')
  return readCommand({ folder, command, source, intervalMs: interval ?? INTERVAL_MS })
}

/** Quotes for the shell of this platform. Names on Windows contain no quotes. */
export function shellQuote(text: string, platform: NodeJS.Platform = process.platform): string {
  if (platform !== 'win32') return shellWord(text)
  return /^[\w@+=:,.\\/-]+$/.test(text) ? text : `"${text}"`
}

function rejectJavaScript({ facts: { module } }: Project): void {
  if (/^\.m?ts$/.test(extname(module))) return
  throw new UsageError(
    `The example is TypeScript and cannot be written to ${module}. Name a file in .ts or .mts, or a crawl that exists.`,
  )
}

function nextCommands(
  { facts, source }: Project,
  wanted: readonly Supervisor[],
  { starts, advice }: { starts: boolean; advice: readonly Advice[] },
): string[] {
  const trial = [
    `npx unstuck work ${shellQuote(facts.module)} --drain`,
    'npx unstuck status',
    ...(source === null ? [] : [`npx unstuck items ${shellQuote(source)}`]),
  ]
  return [
    ...(facts.folder === process.cwd() ? [] : [`cd ${shellQuote(facts.folder)}`]),
    ...advice.flatMap(({ commands }) => commands),
    ...(starts ? trial : []),
    ...wanted.flatMap((one) => one.next(facts)),
  ]
}

type Report = {
  readonly folder: string
  readonly dryRun: boolean
  readonly files: readonly FileResult[]
  readonly advice: readonly Advice[]
  readonly next: readonly string[]
}

function print(writer: TextWriter, { folder, dryRun, files, advice, next }: Report): void {
  writer.line(dryRun ? `Nothing is written. In ${folder} it would be:` : `In ${folder}:`)
  const width = Math.max(...files.map(({ path }) => widthOf(path)))
  for (const { path, action, about } of files) {
    const style = action === 'kept' ? 'dim' : 'good'
    writer.line('  ', { text: pad(action, 8), style }, '  ', pad(path, width), `  ${about}`)
  }
  for (const { note } of advice) {
    writer.blank()
    writer.paragraph({ text: 'Note: ', style: 'warn' }, note)
  }
  writer.heading('Next')
  // In backticks a command is neither broken nor cut on a narrow terminal.
  for (const command of next) writer.paragraph(`  \`${command}\``)
}

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { print } from './figures.ts'
import { findModule } from './packages.ts'

/** What PM2 alone does with a scraper, and what it does with the same one wrapped in `unstuck run`. */
export async function benchPm2(): Promise<void> {
  for (const [what, measure] of Object.entries(SCENARIOS)) {
    print({ bench: 'pm2', what, alone: await measure(false), wrapped: await measure(true) })
  }
}

/** Null if it is not installed: then `bench/main.ts` does not start this benchmark. */
export const PM2: string | null = findModule('pm2/bin/pm2')
const UNSTUCK = fileURLToPath(new URL('../bin/unstuck.js', import.meta.url))

/** Every line of `ticks` is a copy and a time in milliseconds; of `pages`, a copy and `begun` or `saved`. */
const PROGRAMS = {
  /** Pages of six seconds. Asked to end, it saves the page in hand first, as long as it takes. */
  'pages.cjs': `
    const { appendFileSync } = require('node:fs')
    const say = (file, text) => appendFileSync(process.env.BENCH + '/' + file, process.pid + ' ' + text + '\\n')
    let asked = false
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (asked = true))
    setInterval(() => say('ticks', Date.now()), 5)
    say('pages', 'begun')
    setInterval(() => {
      say('pages', 'saved')
      if (asked) process.exit(0)
      say('pages', 'begun')
    }, 6000)`,
  'forever.sh': `
    exec 9<> <(:)
    while :; do echo "$$ \${EPOCHREALTIME/./}" >> "$BENCH/micro"; read -t 0.005 -u 9; done`,
  'deaf.sh': `
    exec 9<> <(:)
    trap '' INT TERM
    while :; do echo "$$ \${EPOCHREALTIME/./}" >> "$BENCH/micro"; read -t 0.005 -u 9; done`,
  'crashes.sh': `
    echo "$$ \${EPOCHREALTIME/./}" >> "$BENCH/micro"
    sleep 1.2
    exit 1`,
}

/** As `unstuck init --for pm2` writes it; PM2 starts it again when it was killed, but not when it gave up. */
const WRAPPED = {
  script: UNSTUCK,
  interpreter: process.execPath,
  exec_mode: 'fork',
  treekill: false,
  pmx: false,
  kill_timeout: 40_000,
  exp_backoff_restart_delay: 1_000,
  stop_exit_codes: Array.from({ length: 255 }, (_, n) => n + 1).filter((n) => n < 5 || n > 7),
}
const wrapped = (...args: string[]): object => ({ ...WRAPPED, args: ['run', 'bench', ...args] })
const shell = (script: string): object => ({ script, interpreter: 'bash' })

const GRACE_MS = 12_000
const WATCH_MS = 25_000

const SCENARIOS: Record<string, (isWrapped: boolean) => Promise<string>> = {
  /** In cluster mode, where alone PM2 does not simply restart on reload. */
  reload: (isWrapped) =>
    withPm2(async (bench) => {
      await bench.start(
        isWrapped
          ? wrapped('--', process.execPath, 'pages.cjs')
          : { script: 'pages.cjs', exec_mode: 'cluster', instances: 1 },
      )
      await bench.waitForMidPage()
      bench.pm2('reload', 'bench')
      await sleep(GRACE_MS)
      return `${bench.overlapMs()} ms together, ${bench.interruptedPages()} pages cut short`
    }),

  restart: (isWrapped) =>
    withPm2(async (bench) => {
      await bench.start(
        isWrapped ? wrapped('--', process.execPath, 'pages.cjs') : { script: 'pages.cjs' },
      )
      await bench.waitForMidPage()
      bench.pm2('restart', 'bench')
      await sleep(GRACE_MS)
      return `${bench.overlapMs()} ms together, ${bench.interruptedPages()} pages cut short`
    }),

  'daemon killed -9, resurrect': (isWrapped) =>
    withPm2(async (bench) => {
      await bench.start(isWrapped ? wrapped('--', 'bash', 'forever.sh') : shell('forever.sh'))
      await bench.waitForCopies(1)
      bench.pm2('save')
      bench.killDaemon()
      bench.pm2('resurrect')
      await bench.waitForCopies(2)
      await sleep(GRACE_MS)
      return `${bench.overlapMs()} ms together in ${GRACE_MS / 1_000} s, ${bench.liveCopies().length} alive at the end`
    }),

  'crash loop': (isWrapped) =>
    withPm2(async (bench) => {
      const limits = ['--restart', 'on-failure', '--restart-delay', '500ms', '--min-uptime', '1s']
      await bench.start(
        isWrapped ? wrapped(...limits, '--', 'bash', 'crashes.sh') : shell('crashes.sh'),
      )
      await bench.waitForCopies(1)
      await sleep(WATCH_MS)
      const starts = bench.lifetimes().length
      const isQuiet = bench.lifetimes().every(({ from }) => Date.now() - from > 5_000)
      return `${starts} starts in ${WATCH_MS / 1_000} s, ${isQuiet ? 'then it gave up' : 'and on it goes'}`
    }),

  'time to SIGKILL': (isWrapped) =>
    withPm2(async (bench) => {
      await bench.start(
        isWrapped ? wrapped('--kill-timeout', '5s', '--', 'bash', 'deaf.sh') : shell('deaf.sh'),
      )
      await bench.waitForCopies(1)
      const calledAt = Date.now()
      bench.pm2('stop', 'bench')
      await sleep(500)
      return `${Math.round(bench.lifetimes()[0]!.to - calledAt)} ms after the call`
    }),
}

type Lifetime = { readonly copy: string; readonly from: number; readonly to: number }

/** A PM2 daemon and a database of one measurement's own. */
class Pm2Bench {
  readonly folder = mkdtempSync('/tmp/pm2-')

  constructor() {
    for (const [name, text] of Object.entries(PROGRAMS))
      writeFileSync(join(this.folder, name), text)
  }

  get #env(): NodeJS.ProcessEnv {
    const { folder } = this
    const UNSTUCK_DB = `sqlite:${folder}/unstuck.db`
    const PM2_HOME = join(folder, 'pm2')
    return { ...process.env, BENCH: folder, PM2_HOME, PM2_DISABLE_VERSION_CHECK: '1', UNSTUCK_DB }
  }

  pm2(...args: string[]): void {
    const how = { cwd: this.folder, env: this.#env, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, [PM2!, ...args], how)
    if (status !== 0) throw new Error(`pm2 ${args.join(' ')}: ${stdout}${stderr}`)
  }

  async start(app: object): Promise<void> {
    const apps = [{ name: 'bench', cwd: this.folder, ...app }]
    writeFileSync(
      join(this.folder, 'bench.config.cjs'),
      `module.exports = ${JSON.stringify({ apps })}`,
    )
    this.pm2('start', 'bench.config.cjs')
  }

  killDaemon(): void {
    process.kill(Number(readFileSync(join(this.folder, 'pm2/pm2.pid'), 'utf8')), 'SIGKILL')
  }

  /** From the first tick of each copy to its last, in the order they began. */
  lifetimes(): Lifetime[] {
    const ticks = [
      ...this.#lines('ticks').map(([copy, at]) => ({ copy: copy!, at: Number(at) })),
      ...this.#lines('micro').map(([copy, at]) => ({ copy: copy!, at: Number(at) / 1_000 })),
    ]
    return [...Map.groupBy(ticks, ({ copy }) => copy)]
      .map(([copy, mine]) => {
        const times = mine.map(({ at }) => at)
        return { copy, from: Math.min(...times), to: Math.max(...times) }
      })
      .sort((a, b) => a.from - b.from)
  }

  overlapMs(): number {
    const lives = this.lifetimes()
    const shared = lives.map(({ from }, n) => Math.max(0, (lives[n - 1]?.to ?? 0) - from))
    return Math.round(shared.reduce((sum, ms) => sum + ms, 0))
  }

  liveCopies(): Lifetime[] {
    return this.lifetimes().filter(({ to }) => Date.now() - to < 200)
  }

  /** Of the copies that have ended: begun, and never saved. */
  interruptedPages(): number {
    const ended = this.lifetimes().filter(({ to }) => Date.now() - to > 500)
    const count = (copy: string, what: string): number =>
      this.#lines('pages').filter((line) => line[0] === copy && line[1] === what).length
    return ended.reduce((sum, { copy }) => sum + count(copy, 'begun') - count(copy, 'saved'), 0)
  }

  /** Waits until so many copies have been seen. */
  async waitForCopies(copies: number): Promise<void> {
    while (this.lifetimes().length < copies) await sleep(20)
  }

  /** The second has just begun: the call to PM2 takes half a second, and there are six. */
  async waitForMidPage(): Promise<void> {
    while (this.#lines('pages').length < 3) await sleep(5)
  }

  #lines(file: string): string[][] {
    try {
      const text = readFileSync(join(this.folder, file), 'utf8')
      return text
        .split('\n')
        .slice(0, -1)
        .map((line) => line.split(' '))
    } catch {
      return []
    }
  }

  /** Ends also what PM2 has lost sight of. */
  end(): void {
    spawnSync(process.execPath, [PM2!, 'kill'], { env: this.#env })
    for (const { copy } of this.liveCopies()) {
      try {
        process.kill(Number(copy), 'SIGKILL')
      } catch {
        // It is gone already.
      }
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function withPm2(act: (bench: Pm2Bench) => Promise<string>): Promise<string> {
  const bench = new Pm2Bench()
  try {
    return await act(bench)
  } finally {
    bench.end()
  }
}

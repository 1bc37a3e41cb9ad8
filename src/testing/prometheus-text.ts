/** A metric as it stands in the text that Prometheus reads. */
export type TextMetric = {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: TextSample[]
}
export type TextSample = {
  /** Of a histogram with `_bucket`, `_sum` or `_count` behind it. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|NaN|[+-]Inf)$/

/**
 * Reads the text format of Prometheus, version 0.0.4, and is stricter than Prometheus: every metric has HELP and TYPE
 * before its samples and stands in one piece, no series comes twice, a counter is never negative and its name ends in
 * `_total`, and the buckets of a histogram grow up to `+Inf`, which is its count. Throws at the first mistake.
 */
export function parsePrometheus(text: string): Map<string, TextMetric> {
  const metrics = new Map<string, TextMetric>()
  const seen = new Set<string>()
  let help: { name: string; text: string } | null = null
  let current: TextMetric | null = null
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  for (const line of text.slice(0, -1).split('\n')) {
    const fail = (what: string): Error => new Error(`${what}: ${JSON.stringify(line)}`)
    if (line === '') continue
    const [, word, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? []
    if (word === 'HELP') {
      if (!NAME.test(name) || metrics.has(name)) throw fail('a wrong name, or one that was there')
      if (/\\(?![\\n])/.test(rest)) throw fail('a wrong escape')
      help = { name, text: rest }
    } else if (word === 'TYPE') {
      if (help?.name !== name) throw fail('a TYPE without its HELP')
      if (rest !== 'counter' && rest !== 'gauge' && rest !== 'histogram') throw fail('a wrong type')
      current = { name, help: help.text, type: rest, samples: [] }
      metrics.set(name, current)
      if (rest === 'counter' && !name.endsWith('_total')) throw fail('a counter without _total')
    } else if (line.startsWith('#')) {
      throw fail('a comment that is neither HELP nor TYPE')
    } else {
      const sample = readSample(line, fail)
      if (!current || !belongs(sample.name, current)) throw fail('a sample without its TYPE')
      const series = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
      if (seen.has(series)) throw fail('a series that was there')
      seen.add(series)
      if (current.type === 'counter' && !(sample.value >= 0)) throw fail('a counter below 0')
      current.samples.push(sample)
    }
  }
  for (const metric of metrics.values()) if (metric.type === 'histogram') checkHistogram(metric)
  return metrics
}

function belongs(name: string, metric: TextMetric): boolean {
  if (metric.type !== 'histogram') return name === metric.name
  return ['_bucket', '_sum', '_count'].some((part) => name === `${metric.name}${part}`)
}

function readSample(line: string, fail: (what: string) => Error): TextSample {
  const [, name, inBraces, value] = SAMPLE.exec(line) ?? []
  if (name === undefined || value === undefined) throw fail('no sample')
  if (!NUMBER.test(value)) throw fail('no number')
  const labels: Record<string, string> = {}
  for (let rest = inBraces ?? ''; rest !== '';) {
    const [whole = '', label = '', escaped = ''] = LABEL.exec(rest) ?? []
    if (label === '' || label in labels) throw fail('a wrong label')
    labels[label] = escaped.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char))
    rest = rest.slice(whole.length)
  }
  return { name, labels, value: numberOf(value) }
}

function numberOf(text: string): number {
  return text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text)
}

function checkHistogram({ name, samples }: TextMetric): void {
  if (samples.length === 0) return
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`)
  const [sums, counts] = ['_sum', '_count'].map((part) =>
    samples.filter((sample) => sample.name === `${name}${part}`),
  )
  if (sums?.length !== 1 || counts?.length !== 1) throw new Error(`${name}: no sum, or no count`)
  const steps = buckets.map(({ labels, value }) => ({ le: numberOf(labels['le'] ?? '?'), value }))
  for (const [n, { le, value }] of steps.entries()) {
    const before = steps[n - 1]
    if (Number.isNaN(le) || (before && (le <= before.le || value < before.value))) {
      throw new Error(`${name}: its buckets do not grow at ${le}`)
    }
  }
  const last = steps.at(-1)
  if (last?.le !== Infinity || last.value !== counts[0]!.value) {
    throw new Error(`${name}: its last bucket is not +Inf, or not its count`)
  }
}

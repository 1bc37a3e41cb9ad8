import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BUILD_INFO, METRICS, UP } from '../src/features/metrics/prometheus.ts'

/** examples/monitoring: what it names is there, and what it holds can be read. */

const FOLDER = join(import.meta.dirname, '..', 'examples', 'monitoring')
const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8')

const SERIES = new Set([
  UP,
  BUILD_INFO,
  ...METRICS.flatMap(({ name, type }) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
])

/** Every series that an expression asks for is one that there is, with labels that it has. */
function assertKnown(expression: string): void {
  const asked = [...expression.matchAll(/\b(unstuck_\w+)(?:\{([^}]*)\})?/g)]
  assert.ok(asked.length > 0, expression)
  for (const [, name, labels = ''] of asked) {
    assert.ok(SERIES.has(name!), `${name} in ${expression}`)
    const metric = METRICS.find((one) => one.name === name)
    for (const [, label] of labels.matchAll(/(\w+)(?:=|!)/g)) {
      assert.ok(metric?.labels?.includes(label!), `${label} of ${name}`)
    }
  }
  const count = (char: string) => expression.split(char).length
  for (const [open, close] of ['()', '{}', '[]']) assert.equal(count(open!), count(close!))
}

type Panel = {
  id: number
  title: string
  datasource: { uid: string }
  gridPos: { x: number; y: number; w: number; h: number }
  targets: { expr: string; refId: string }[]
}

test('the Grafana dashboard can be imported, and queries only existing metrics', () => {
  const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
    uid: string
    templating: { list: { name: string; type: string }[] }
    panels: Panel[]
  }
  assert.equal(dashboard.uid, 'unstuck')
  assert.deepEqual(
    dashboard.templating.list.map(({ name, type }) => [name, type]),
    [['datasource', 'datasource']],
  )
  assert.ok(dashboard.panels.length >= 10)
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  for (const { datasource, gridPos, targets } of dashboard.panels) {
    assert.equal(datasource.uid, '${datasource}')
    assert.ok(gridPos.x + gridPos.w <= 24)
    for (const { expr } of targets) assertKnown(expr)
  }
  const shown = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join()
  for (const { name } of METRICS) assert.ok(shown.includes(name), `${name} is on no panel`)
})

test('the Prometheus rules query only existing metrics, and each describes what to do', () => {
  const { groups } = parseYaml(read('alert-rules.yml')) as {
    groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[]
  }
  const { rules } = groups[0]!
  assert.ok(rules.length >= 5)
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  for (const { expr, annotations } of rules) {
    assertKnown(expr)
    assert.ok(annotations['summary'] && annotations['description'])
  }
})

test('the part of prometheus.yml can be read, and names the rules', () => {
  const config = parseYaml(read('prometheus.yml')) as {
    rule_files: string[]
    scrape_configs: { metrics_path: string; static_configs: { targets: string[] }[] }[]
  }
  assert.deepEqual(config.rule_files, ['alert-rules.yml'])
  assert.equal(config.scrape_configs[0]!.metrics_path, '/metrics')
  assert.deepEqual(config.scrape_configs[0]!.static_configs[0]!.targets, ['localhost:4600'])
})

type Line = { readonly indent: number; readonly text: string }

/** As much of YAML as the examples are written in: maps, lists and plain or quoted text. Anything else is a mistake. */
function parseYaml(text: string): unknown {
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .map((line) => ({ indent: line.search(/\S/), text: line.trim() }))
  for (const { text } of lines) assert.doesNotMatch(text, /\t| #/, text)
  const value = readBlock(lines, lines[0]!.indent)
  assert.equal(lines.length, 0, `not understood: ${lines[0]?.text}`)
  return value
}

function readBlock(lines: Line[], indent: number): unknown {
  const items: unknown[] = []
  const map: Record<string, unknown> = {}
  for (let line; (line = lines[0]) && line.indent === indent;) {
    if (line.text.startsWith('- ')) {
      const rest = line.text.slice(2)
      // A map that begins behind the dash goes on below it.
      if (/^\w+:( |$)/.test(rest)) {
        lines[0] = { indent: indent + 2, text: rest }
        items.push(readBlock(lines, indent + 2))
      } else {
        lines.shift()
        items.push(scalar(rest))
      }
      continue
    }
    const [, key, value] = /^(\w+):(?: (.+))?$/.exec(line.text) ?? []
    assert.ok(key !== undefined && !(key in map), `not understood: ${line.text}`)
    lines.shift()
    const below = lines[0]
    map[key] =
      value !== undefined || !below || below.indent <= indent
        ? scalar(value ?? '')
        : readBlock(lines, below.indent)
  }
  return items.length > 0 ? items : map
}

function scalar(text: string): string {
  const quoted = /^'((?:[^']|'')*)'$/.exec(text) ?? /^"([^"\\]*)"$/.exec(text)
  if (quoted) return quoted[1]!.replaceAll("''", "'")
  assert.doesNotMatch(text, /^['"{}[\],&*!|>%@`]|: |:$/, `needs quotes: ${text}`)
  return text
}

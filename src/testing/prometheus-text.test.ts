import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePrometheus } from './prometheus-text.ts'

const HEAD = '# HELP a_total How many.\n# TYPE a_total counter\n'
const HISTOGRAM = '# HELP h x\n# TYPE h histogram\n'

test('valid text is parsed', () => {
  const metrics = parsePrometheus(
    `${HEAD}a_total{x="1",y="\\"\\\\\\n"} 3\na_total 1e3\n\n` +
      `${HISTOGRAM}h_bucket{le="0.5"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3.5\nh_count 2\n`,
  )
  assert.deepEqual(metrics.get('a_total')?.samples[0], {
    name: 'a_total',
    labels: { x: '1', y: '"\\\n' },
    value: 3,
  })
  assert.equal(metrics.get('h')?.samples.length, 4)
})

for (const [what, text] of [
  ['no end', `${HEAD}a_total 1`],
  ['no HELP', '# TYPE a_total counter\na_total 1\n'],
  ['no TYPE', 'a_total 1\n'],
  ['a wrong type', '# HELP a_total x\n# TYPE a_total thing\na_total 1\n'],
  ['a metric in two pieces', `${HEAD}a_total 1\n${HEAD}a_total{x="1"} 1\n`],
  ['a sample of another metric', `${HEAD}b_total 1\n`],
  ['a series twice', `${HEAD}a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n`],
  ['a wrong escape', `${HEAD}a_total{x="\\t"} 1\n`],
  ['a label without quotes', `${HEAD}a_total{x=1} 1\n`],
  ['a wrong label', `${HEAD}a_total{1x="1"} 1\n`],
  ['a label twice', `${HEAD}a_total{x="1",x="2"} 1\n`],
  ['no number', `${HEAD}a_total one\n`],
  ['a negative counter', `${HEAD}a_total -1\n`],
  ['a counter that is not called so', '# HELP a x\n# TYPE a counter\na 1\n'],
  [
    'buckets that shrink',
    `${HISTOGRAM}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
  ],
  [
    'buckets in no order',
    `${HISTOGRAM}h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_sum 1\nh_count 1\n`,
  ],
  ['no +Inf', `${HISTOGRAM}h_bucket{le="1"} 2\nh_sum 1\nh_count 2\n`],
  ['another count', `${HISTOGRAM}h_bucket{le="+Inf"} 2\nh_sum 1\nh_count 3\n`],
  ['no sum', `${HISTOGRAM}h_bucket{le="+Inf"} 2\nh_count 2\n`],
] as const) {
  test(`rejected: ${what}`, () => assert.throws(() => parsePrometheus(text)))
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import * as fc from 'fast-check'
import type { Cell, Column } from '../text/sentence.ts'
import { TextWriter } from './text-writer.ts'
import { truncate, widthOf } from './width.ts'
import { progressBar, percent } from '../../presenters/format.ts'

const COLUMNS: Column[] = [
  { header: 'RUN' },
  { header: 'SOURCE', flex: true },
  { header: 'STATUS' },
  { header: 'ITEMS', align: 'right', optional: 1 },
  { header: 'AGE', align: 'right', optional: 2 },
]
const ROWS: Cell[][] = [
  ['4f2a91bc', 'directory', { text: 'running', style: 'good' }, '5102', '12 min'],
  ['0d88fcca', '東京の求人情報と不動産のとても長い名前のポータルサイト', 'succeeded', '7', '2 h'],
  [
    'e0a454cc',
    'a-very-long-source-name-that-does-not-fit-into-eighty-columns-at-all',
    'failed',
    '0',
    '3 days',
  ],
]

function table(columns: number, colour = false): string {
  const writer = new TextWriter(columns, colour)
  writer.table(COLUMNS, ROWS)
  return writer.toString()
}

test('a table fits 80 columns: the flexible column gives way', () => {
  assert.equal(
    table(80),
    `RUN       SOURCE                                        STATUS     ITEMS     AGE
4f2a91bc  directory                                     running     5102  12 min
0d88fcca  東京の求人情報と不動産のとても長い名前のポ…   succeeded      7     2 h
e0a454cc  a-very-long-source-name-that-does-not-fit-i…  failed         0  3 days
`,
  )
})

test('on 40 columns the least needed columns are left out', () => {
  assert.equal(
    table(40),
    `RUN       SOURCE        STATUS     ITEMS
4f2a91bc  directory     running     5102
0d88fcca  東京の求人…   succeeded      7
e0a454cc  a-very-long…  failed         0
`,
  )
})

test('a pipe has no width: nothing is cut', () => {
  assert.match(
    table(Infinity),
    /a-very-long-source-name-that-does-not-fit-into-eighty-columns-at-all  failed/,
  )
})

test('colour adds nothing but colour', () => {
  const coloured = table(80, true)
  assert.ok(coloured.includes('\x1b[32mrunning'))
  assert.equal(stripVTControlCharacters(coloured), table(80))
})

test('no line is wider than the terminal, whatever the text', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 })
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 3, maxLength: 3 }),
      fc.integer({ min: 30, max: 90 }),
      (cells, columns) => {
        const writer = new TextWriter(columns, false)
        writer.table(
          [{ header: 'A' }, { header: 'B', flex: true }, { header: 'C', optional: 1 }],
          [cells],
        )
        writer.line(...cells)
        for (const line of writer.toString().split('\n')) assert.ok(widthOf(line) <= columns, line)
      },
    ),
  )
})

test('sentences wrap between words, and a command to copy stays whole', () => {
  const writer = new TextWriter(40, false)
  writer.paragraph(
    '- ',
    { text: 'directory', style: 'strong' },
    ': two targets failed. See `unstuck show 4f2a91bc`.',
  )
  assert.equal(
    writer.toString(),
    '- directory: two targets failed. See\n  `unstuck show 4f2a91bc`.\n',
  )
})

test('scraped text cannot act, wherever a command puts it', () => {
  const evil = 'x\x1b]52;c;aGk=\x07\u009b2J\u202e\r\ny'
  const writer = new TextWriter(200, false)
  writer.line(evil, { text: evil, style: 'bad' })
  writer.paragraph(evil)
  writer.heading(evil)
  writer.table([{ header: 'A' }], [[evil]])
  assert.doesNotMatch(writer.toString(), /(?!\n)\p{Cc}|\u202e/u)
  assert.equal(writer.toString().split('\n').length, 7)
})

for (const [text, width] of [
  ['abc', 3],
  ['東京', 4],
  ['é', 1],
  ['e\u0301', 1],
  ['😀', 2],
  ['👩‍👩‍👧', 2],
  ['🇩🇪', 2],
  ['❤️', 2],
  ['ｆｕｌｌ', 8],
  ['한국', 4],
  ['…–█', 3],
] as const) {
  test(`${text} takes ${width} columns`, () => assert.equal(widthOf(text), width))
}

test('a cut text ends in an ellipsis and never inside a character', () => {
  assert.equal(truncate('東京都', 5), '東京…')
  assert.equal(truncate('東京都', 4), '東…')
  assert.equal(truncate('👩‍👩‍👧👩‍👩‍👧', 3), '👩‍👩‍👧…')
})

test('a bar is full only when all is done, and empty only when nothing is', () => {
  assert.equal(progressBar(0, 0), '░░░░░░░░')
  assert.equal(progressBar(1, 1_000_000), '█░░░░░░░')
  assert.equal(progressBar(999_999, 1_000_000), '███████░')
  assert.equal(progressBar(5, 5), '████████')
  assert.equal(percent(999_999, 1_000_000), '99 %')
  assert.equal(percent(1, 1_000_000), '1 %')
})

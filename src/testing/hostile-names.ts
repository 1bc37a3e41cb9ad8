import fc from 'fast-check'
import { HOSTILE_TEXTS } from './hostile-text.ts'

const splitWords = (text: string): string[] => text.split(' ')

/** As people's tables and columns are called. */
export const VALID_NAMES = splitWords(
  'id createdAt _hidden a STATUS extracted_total_tenders x1$2 select',
)
VALID_NAMES.push('x'.repeat(63))

/** By their numbers, because one cannot see them, or cannot tell them from honest ones. */
const INVISIBLE_CHARACTERS = [
  '0 7 8 9 a b d 1b 7f 85 2028 2029', // controls, ends of lines
  'a0 1680 2003 202f 3000 ad 200b 200d 2060 feff', // spaces and less
  '200e 200f 61c 202a 202e 2066 2069 301 e0061', // directions, marks, tags
  '430 3bf ff41 212a 17f 131 e9 df 1d41a 1f600 d83d dc00', // letters, almost; halves of characters
  'ff11 663 b2 ff3f 203f ff04 fe69 ff0d 2212 2013', // digits and signs, almost
  'ff02 2ba 201d ff07 2bc 2018 ff1b 37e ff0e 2024', // quotes and stops
].flatMap((line) => splitWords(line).map((code) => String.fromCodePoint(Number.parseInt(code, 16))))

/** One of these anywhere in a name, and it is none. */
const INVALID_PARTS = [
  INVISIBLE_CHARACTERS,
  splitWords(`" ' \` ; \\ ( ) [ ] { } < > % # @ ? ! & | = + * / : , ~ ^ "" -- /* */ .. $1;`),
  splitWords('${id} {{id}} $(id) <%=id%> :name %s \\u0022 %22 &quot; \\x22 ";VACUUM;"'),
  ['"; DROP TABLE runs; --', "' OR '1'='1", '" UNION SELECT 1 --', 'U&"\\0022"'],
  [' ', '-', ' OR ', ' UNION SELECT ', ' -', '- ', '. ', ' .', '-.', '\r\n'],
].flat()

const validName = fc.constantFrom(...VALID_NAMES)
/** Names that must not get into a statement. */
export const hostileName = fc.oneof(
  fc.tuple(validName, fc.constantFrom(...INVALID_PARTS), validName).map((parts) => parts.join('')),
  fc.tuple(fc.constantFrom(...INVALID_PARTS), validName).map((parts) => parts.join('')),
  fc.tuple(validName, fc.constantFrom(...INVALID_PARTS)).map((parts) => parts.join('')),
  fc.constantFrom(...HOSTILE_TEXTS.filter((text) => !/^[\w$]+(?:[.][\w$]+)*$/.test(text))),
  fc.tuple(validName, validName, validName).map((parts) => parts.join('.')),
  fc.string({ unit: fc.constantFrom('a', 'B', '7', '_'), minLength: 64, maxLength: 300 }),
  fc.tuple(fc.constantFrom('0', '9', '$', '-', ' ', '.'), validName).map((parts) => parts.join('')),
  fc.tuple(validName, fc.constantFrom('-', ' ', '.')).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }).filter((text) => /[^\w$.]/.test(text)),
)

export function hostileNames(count: number): string[] {
  return fc.sample(hostileName, count)
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalUrl } from './url.ts'

const cases: [string, string, string][] = [
  [
    'the host is in lower case, the path is not',
    'HTTPS://Shop.Example/Acme',
    'https://shop.example/Acme',
  ],
  ['the default port of https goes', 'https://a.example:443/x', 'https://a.example/x'],
  ['the default port of http goes', 'http://a.example:80/x', 'http://a.example/x'],
  ['another port stays', 'https://a.example:8443/x', 'https://a.example:8443/x'],
  ['the fragment goes', 'https://a.example/x#top', 'https://a.example/x'],
  ['a trailing slash goes', 'https://a.example/x/', 'https://a.example/x'],
  ['that of the host alone too', 'https://a.example/', 'https://a.example'],
  ['and before a query', 'https://a.example/x/?q=1', 'https://a.example/x?q=1'],
  ['dots are resolved', 'https://a.example/b/../c/./d', 'https://a.example/c/d'],
  ['parameters are put in order', 'https://a.example/?b=2&a=1', 'https://a.example?a=1&b=2'],
  [
    'the same parameter twice stays twice',
    'https://a.example/?a=2&a=1',
    'https://a.example?a=1&a=2',
  ],
  [
    'tracking goes, whatever its case',
    'https://a.example/x?utm_source=n&UTM_Medium=m&id=7&fbclid=1&gclid=2&_ga=3',
    'https://a.example/x?id=7',
  ],
  ['what only looks like tracking stays', 'https://a.example/?utm=1', 'https://a.example?utm=1'],
  ['an empty query goes', 'https://a.example/x?', 'https://a.example/x'],
  ['a parameter without a value stays', 'https://a.example/?a&b=', 'https://a.example?a&b='],
  ['what was encoded stays so', 'https://a.example/?q=a%2Bb', 'https://a.example?q=a%2Bb'],
  ['a plus is not a blank', 'https://a.example/?q=a+b', 'https://a.example?q=a+b'],
  ['user and password stay', 'https://me:pw@a.example/', 'https://me:pw@a.example'],
  ['blanks around go', '  https://a.example/x  ', 'https://a.example/x'],
  [
    'names beyond ASCII become what DNS knows',
    'https://bücher.example/',
    'https://xn--bcher-kva.example',
  ],
]
for (const [title, address, canonical] of cases) {
  test(`${title}: ${address}`, () => assert.equal(canonicalUrl(address), canonical))
}

test('a non-HTTP address has no canonical form', () => {
  for (const address of ['', 'shop', '/x', 'ftp://a.example/', 'javascript:alert(1)', 'https://']) {
    assert.equal(canonicalUrl(address), null, address)
  }
})

test('http and https are two addresses', () => {
  assert.notEqual(canonicalUrl('http://a.example/'), canonicalUrl('https://a.example/'))
})

test('always: the canonical form of a canonical form is itself', () => {
  const address = fc.oneof(
    fc.webUrl({ withFragments: true, withQueryParameters: true }),
    fc
      .tuple(
        fc.webAuthority({ withPort: true, withUserInfo: true, withIPv4: true }),
        fc.webPath(),
        fc.array(fc.tuple(fc.string(), fc.string())),
      )
      .map(([host, path, pairs]) => {
        const query = pairs.map(([name, value]) => `${name}=${value}`).join('&')
        return `http://${host}${path}?${query}`
      }),
  )
  fc.assert(
    fc.property(address, (address) => {
      const canonical = canonicalUrl(address)
      if (canonical !== null) assert.equal(canonicalUrl(canonical), canonical)
    }),
    { numRuns: 2_000 },
  )
})

test('always: the order of parameters and the tracking among them make no difference', () => {
  const pair = fc
    .tuple(fc.stringMatching(/^[a-z]{1,3}$/), fc.stringMatching(/^[a-z0-9]{0,3}$/))
    .map(([name, value]) => `${name}=${value}`)
  fc.assert(
    fc.property(fc.array(pair, { minLength: 1 }), fc.nat(), (pairs, turn) => {
      const at = turn % pairs.length
      const turned = [...pairs.slice(at), 'utm_campaign=x', ...pairs.slice(0, at)]
      assert.equal(
        canonicalUrl(`https://a.example/x?${pairs.join('&')}`),
        canonicalUrl(`https://a.example/x?${turned.join('&')}`),
      )
    }),
  )
})

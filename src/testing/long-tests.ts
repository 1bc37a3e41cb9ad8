/** `npm run proof`: the same tests, with more of everything. `npm test` has to end within minutes. */
export const isLong = process.env['UNSTUCK_TESTS'] === 'long'

// This and what imports it runs on any Node, however old, so that users read one sentence instead of a syntax error.
const [major, minor] = process.versions.node.split('.').map(Number)

/** Why this Node cannot run the package; null if it can. */
export const mistake =
  major > 24 || (major === 24 && minor >= 15)
    ? null
    : `unstuck needs Node 24.15 or newer; this is ${process.version}. ` +
      'Install it from nodejs.org; in a clone of the repository npm scripts have it after `npm ci`.'

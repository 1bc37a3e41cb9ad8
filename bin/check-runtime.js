// Runs on any Node, however old, so that a stranger reads one sentence instead of a syntax error.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `unstuck needs Node 24.15 or newer; this is ${process.version}. ` +
      'In this repository `npm ci` installs the right one and npm scripts use it; elsewhere install it from nodejs.org.',
  )
  process.exit(2)
}

/** Unstuck runs as it is, beside the app: it starts threads of its own and opens its database. */
export default { serverExternalPackages: ['unstuck'] }

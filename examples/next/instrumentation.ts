/** When the server starts: stuck runs are recovered beside the start, and looked after from then on. */
export { register } from 'unstuck/next'

/** What a command was told is wrong, which shows only once it has been read: it is told without a stack. */
export class WrongArgument extends Error {}

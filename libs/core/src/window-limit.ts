/**
 * Most messages that the ack windows of one reader may hold, over all partitions. No rewind goes back further than that, so whoever looks
 * for the end of what was published need not remember more.
 */
export const MAX_WINDOW_MESSAGES = 1 << 20;

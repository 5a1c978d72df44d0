/**
 * How this process has its memory collected; imported before anything else.
 *
 * V8 notes where objects that outlive a collection of young ones were made, and from then on makes those of that place among the old ones. Here what a
 * row needs outlives a collection whenever one falls between its reading and its ack, and is garbage right after: made among the old, it piles up
 * with all that it refers to until a collection of everything (ADR 0170). So V8 is told not to guess.
 */
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--no-allocation-site-pretenuring');

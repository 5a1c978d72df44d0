/** Why the module gave up. */
import {
  FAIL_BINARY,
  FAIL_DECIMAL,
  FAIL_HOURS,
  FAIL_JSON,
  FAIL_JSON_DEPTH,
  FAIL_JSON_LENGTH,
  FAIL_JSON_TWICE,
  FAIL_MEMBER,
  FAIL_MICROSECONDS,
  FAIL_ROOM,
  FAIL_SHORT,
  FAIL_YEAR,
  INPUT,
  OUTPUT,
} from './layout.ts';

const REASONS: Readonly<Record<number, string>> = {
  [FAIL_SHORT]: 'the rows end within a value',
  [FAIL_ROOM]: 'a row is larger than the room for it',
  [FAIL_DECIMAL]: 'a DECIMAL has more digits than there is room for',
  [FAIL_YEAR]: 'a date is in no year from 0 to 9999',
  [FAIL_MICROSECONDS]: 'a time has a million microseconds or more',
  [FAIL_HOURS]: 'a TIME has more hours than there can be',
  [FAIL_BINARY]: 'a BINARY is longer than its column',
  [FAIL_MEMBER]: 'an ENUM or SET has no such member',
  [FAIL_JSON]: 'a JSON value lies outside its document, or is of no kind that there is',
  [FAIL_JSON_DEPTH]: 'a JSON document is too deep',
  [FAIL_JSON_TWICE]: 'a JSON document uses bytes of itself twice',
  [FAIL_JSON_LENGTH]: 'a JSON length has more than five bytes',
};

export class Failure extends RangeError {
  readonly code: number;

  /** `at` is a place in the module's memory. */
  constructor(code: number, at: number) {
    const reason = REASONS[code] ?? `failure ${code}`;
    super(at >= INPUT && at < OUTPUT ? `${reason}, ${at - INPUT} bytes behind the first row` : reason);
    this.code = code;
  }
}

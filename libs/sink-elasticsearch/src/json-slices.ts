/**
 * Cuts JSON text into its members without reading their values, so that what is put together again keeps every digit
 * (JSON.parse would round large numbers). For text that a server printed: it is trusted to be valid.
 */

/** The members of the object that begins at `start`: name → text of the value. */
export function objectMembers(text: string, start = 0): Map<string, string> {
  const members = new Map<string, string>();
  let at = skipBlanks(text, start);
  expect(text, at, '{');
  at = skipBlanks(text, at + 1);
  while (text[at] !== '}') {
    const nameEnd = valueEnd(text, at);
    const name: unknown = JSON.parse(text.slice(at, nameEnd));
    at = skipBlanks(text, nameEnd);
    expect(text, at, ':');
    at = skipBlanks(text, at + 1);
    const end = valueEnd(text, at);
    members.set(String(name), text.slice(at, end));
    at = skipBlanks(text, end);
    if (text[at] === ',') at = skipBlanks(text, at + 1);
    else expect(text, at, '}');
  }
  return members;
}

/** The texts of an array's elements. */
export function arrayElements(text: string): string[] {
  const elements: string[] = [];
  let at = skipBlanks(text, 0);
  expect(text, at, '[');
  at = skipBlanks(text, at + 1);
  while (text[at] !== ']') {
    const end = valueEnd(text, at);
    elements.push(text.slice(at, end));
    at = skipBlanks(text, end);
    if (text[at] === ',') at = skipBlanks(text, at + 1);
    else expect(text, at, ']');
  }
  return elements;
}

/** The place after the value that begins at `start`. */
function valueEnd(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return stringEnd(text, start);
  if (first !== '{' && first !== '[') {
    let at = start;
    while (at < text.length && !',]} \t\r\n:'.includes(text.charAt(at))) at++;
    if (at === start) throw new SyntaxError(`a JSON value is missing at character ${start + 1}`);
    return at;
  }
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = stringEnd(text, at) - 1;
    else if (char === '{' || char === '[') depth++;
    else if ((char === '}' || char === ']') && --depth === 0) return at + 1;
  }
  throw new SyntaxError('the JSON text ends too early');
}

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at];
    if (char === '\\') at++;
    else if (char === '"') return at + 1;
  }
  throw new SyntaxError('the JSON text ends too early');
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\t' || text[at] === '\r') at++;
  return at;
}

function expect(text: string, at: number, char: string): void {
  if (text[at] !== char) throw new SyntaxError(`'${char}' is missing at character ${at + 1}`);
}

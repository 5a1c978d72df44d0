/** A drill, as far as its process goes, and what it starts: told apart by the arguments. `LOG [freeze]`, or `child`. */
import { DrillProcess } from '@mysync/drill';

const [what = '', freeze] = process.argv.slice(2);

if (what === 'child') {
  process.stdin.on('close', () => process.stderr.write('ended in order\n')).resume();
  process.stderr.write(`${process.pid}\n`);
} else {
  const child = new DrillProcess({ name: 'child', args: ['child'], logFile: what });
  child.start();
  process.stdin.on('data', () => {
    if (freeze !== undefined) child.freeze();
    process.stdout.write('ready\n');
  });
}

// `npm run bench`: sets up what is missing and runs the benchmarks.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
become('tests/bench/dist/main.js', process.argv.slice(2));

// `npm run bench`: sets up what is missing and runs the benchmarks.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
await become('tests/bench/dist/main.js');

// `npm run big-file`: sets up what is missing and reads a real log file past 4 GiB; it needs 20 GB of disk and some minutes.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
await become('tests/bench/dist/big-file.js');

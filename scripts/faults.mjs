// `npm run faults`: sets up what is missing and runs the fault suite.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
await become('tests/faults/dist/main.js');

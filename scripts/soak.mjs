// `npm run soak`: sets up what is missing and runs a steady load with a fault each minute.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
await become('tests/faults/dist/soak-main.js');

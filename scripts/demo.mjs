// `npm run demo`: sets up what is missing and runs the demo.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
await become('tests/demo/dist/main.js');

// `npm run differential`: sets up what is missing and holds the source against the server's own SELECT.
import { become, build, installPackages } from './steps.mjs';

installPackages();
build();
await become('tests/differential/dist/main.js');

// `npm run check:code`: lint, format, types and unused code, without the tests.
import { checkCode, installPackages } from './steps.mjs';

installPackages();
checkCode();

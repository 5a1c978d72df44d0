// `npm run build`: compiles everything, and installs before what that needs.
import { build, installPackages } from './steps.mjs';

installPackages();
build();

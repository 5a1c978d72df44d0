#!/usr/bin/env -S node --max-semi-space-size=32
// Rows live as long as their batch: with V8's 16 MB most are copied before they die (docs/adr/0090-a-larger-nursery.md).
import '../dist/main.js';

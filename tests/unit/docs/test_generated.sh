#!/usr/bin/env bash
# Goal: the generated documents are what the programs say.
# Method: docs/generate compares them with the programs of this build.
set -euo pipefail
exec "$TOC_TEST_ROOT/docs/generate" --check "$TOC_TEST_BUILD/bin"

#!/usr/bin/env bash
# Goal: the newcomer's command works: `toc up` with its demo, a second `up` that
# changes nothing, the demo again, `env` for other programs, `down`.
# Method: run them in a folder of its own; the demo itself checks each claim.
set -euo pipefail

home=$TOC_TEST_TMP/e2e-demo
toc() { "$TOC_TEST_ROOT/deploy/local/toc" "$@" --home "$home"; }

cleanup()
{
    toc destroy --yes >/dev/null 2>&1 || true
}
trap cleanup EXIT

toc up --no-install --no-build --build-dir "$TOC_TEST_BIN/.."
before=$(cat "$home"/run/*.pid)
toc up --no-install --no-build --build-dir "$TOC_TEST_BIN/.." --no-demo
[[ $(cat "$home"/run/*.pid) == "$before" ]] || {
    echo "the second up replaced processes"
    exit 1
}
toc demo
eval "$(toc env)"
"$TOC_TEST_BIN/tocctl" nodes
"$TOC_TEST_BIN/tocctl" submit order/e2e/pay --in 1h \
    --target "grpc://$TOC_SHOP"
"$TOC_TEST_BIN/tocctl" describe order/e2e/pay
"$TOC_TEST_BIN/tocctl" cancel order/e2e/pay
toc down
[[ -z $(find "$home/run" -name '*.pid' -exec cat {} + | xargs -r -n1 ps -o pid= -p) ]]

/*
 * The parts of a task that only its executor needs, in memory and as stored
 * (a serialized toc.v1.TaskSpec).
 *
 * Ownership: texts of a decoded spec live in the arena given. Threads: any.
 */
#ifndef TOC_MODEL_SPEC_H
#define TOC_MODEL_SPEC_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/model/retry.h"

#include <stdbool.h>
#include <stdint.h>

struct toc_header {
    struct toc_str name, value;
};

struct toc_spec {
    struct toc_str target;   /* grpc://host:port[/package.Service/Method] */
    int64_t call_timeout_ms; /* 0: the default */
    uint32_t batch_max;      /* > 1: the target serves OnTimeoutBatch */
    bool at_most_once;
    struct toc_retry retry;
    struct toc_str content_type;
    struct toc_header headers[TOC_HEADERS_MAX];
    uint16_t n_headers;
    struct toc_str traceparent;
};

/* Appends the stored form. */
void toc_spec_encode(const struct toc_spec *spec, struct toc_buf *out);
/* TOC_DATA_LOSS when the bytes are not a spec. Missing parts get defaults
 * (retry policy, timeout). */
TOC_MUST_CHECK enum toc_status toc_spec_decode(struct toc_str bytes,
                                               struct toc_arena *arena,
                                               struct toc_spec *ret_spec,
                                               struct toc_error *reterr);

#endif

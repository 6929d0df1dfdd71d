/*
 * Hints as they travel over the bus: toc.v1.HintBatch. A hint says "task T in
 * version V is due, and this is how to call"; it decides nothing.
 *
 * Encoding appends one batch to a buffer; decoding checks everything (a
 * message may come from a newer version, or be garbage; an id that does not
 * begin as its key's hash is garbage too) and borrows from the arena.
 */
#ifndef TOC_MODEL_HINT_H
#define TOC_MODEL_HINT_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/model/task.h"

#include <stddef.h>

#define TOC_HINT_FORMAT 1
#define TOC_HINTS_PER_MESSAGE_MAX 256

struct toc_hint {
    /* State, lock and latest attempt are not carried: decoded, the state is
     * INIT and key_hash is worked out from the key. */
    struct toc_task task;
    bool has_payload;    /* false: the claim must read the row */
    uint32_t sched_node; /* who hinted */
};

void toc_hint_encode(const struct toc_hint *hints, size_t n,
                     uint32_t sched_node, struct toc_buf *out);
/* TOC_DATA_LOSS: not decodable; TOC_UNIMPLEMENTED: an unknown format. */
TOC_MUST_CHECK enum toc_status toc_hint_decode(struct toc_str bytes,
                                               struct toc_arena *arena,
                                               struct toc_hint **ret_hints,
                                               size_t *ret_n,
                                               struct toc_error *reterr);

#endif

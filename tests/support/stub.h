/*
 * A business for end-to-end tests: a real TimeoutHandler server that records
 * what it was called with, per task number (the biz_id), and answers what the
 * test tells it to.
 *
 * Threads: calls come on several; the readers may be called at any time.
 */
#ifndef TOC_TESTS_SUPPORT_STUB_H
#define TOC_TESTS_SUPPORT_STUB_H

#include "common/handler/handler.h"

#include <stddef.h>
#include <stdint.h>

#define STUB_CALLS_KEPT 8

struct stub_call {
    uint32_t attempt;
    int64_t due_ms, arrived_ms;
    char fire_id[48];
};

struct stub;
/* Decides the answer (DONE already) of call number `seen` (from 0) for task i.
 */
typedef void stub_answer_fn(void *arg, size_t i, unsigned seen,
                            struct toc_timeout_answer *answer);

/* For task numbers 0..n-1; answer may be NULL. */
struct stub *stub_start(size_t n, stub_answer_fn *answer, void *arg);
void stub_stop(struct stub *stub);
const char *stub_target(const struct stub *stub); /* grpc://127.0.0.1:port */
unsigned stub_calls(struct stub *stub, size_t i); /* calls of task i so far */
/* The k-th call of task i; k < STUB_CALLS_KEPT and k < stub_calls. */
struct stub_call stub_call(struct stub *stub, size_t i, unsigned k);
size_t stub_total(struct stub *stub);    /* calls in all */
size_t stub_distinct(struct stub *stub); /* tasks called at least once */
size_t stub_early(struct stub *stub);    /* calls that arrived before due */
size_t stub_strange(struct stub *stub);  /* calls for no known number */

#endif

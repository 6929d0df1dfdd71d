/*
 * Outcomes of functions that can fail.
 *
 * A function that can fail returns enum toc_status and takes an optional last
 * argument `struct toc_error *reterr`, filled by the adapter that saw the
 * native error; native codes (errno, CR_*, CURLE_*, grpc) go no further than
 * the text in it. On failure `ret_` arguments are untouched. Losing a race is
 * not an error but a value of the operation's own result enum.
 *
 * The second column is the google.rpc.Code that the wire shows, the third
 * whether the same call may succeed when it is simply made again.
 *
 * Threads: any. Nothing here blocks or allocates.
 */
#ifndef TOC_BASE_STATUS_H
#define TOC_BASE_STATUS_H

#include <stdbool.h>

#define TOC_STATUS_MAP(X)                                   \
    X(OK, 0, false, "ok")                                   \
    X(CANCELLED, 1, false, "cancelled")                     \
    X(UNKNOWN, 2, false, "unknown")                         \
    X(INVALID, 3, false, "invalid argument")                \
    X(DEADLINE, 4, true, "deadline exceeded")               \
    X(NOT_FOUND, 5, false, "not found")                     \
    X(EXISTS, 6, false, "already exists")                   \
    X(DENIED, 7, false, "permission denied")                \
    X(EXHAUSTED, 8, true, "resource exhausted")             \
    X(PRECONDITION, 9, false, "failed precondition")        \
    X(CONFLICT, 10, true, "aborted by a concurrent change") \
    X(RANGE, 11, false, "out of range")                     \
    X(UNIMPLEMENTED, 12, false, "not implemented")          \
    X(INTERNAL, 13, false, "internal error")                \
    X(UNAVAILABLE, 14, true, "unavailable")                 \
    X(DATA_LOSS, 15, false, "data loss")                    \
    X(UNAUTHENTICATED, 16, false, "unauthenticated")

enum toc_status {
#define X(name, code, retryable, text) TOC_##name = code,
    TOC_STATUS_MAP(X)
#undef X
};

#define TOC_MUST_CHECK __attribute__((warn_unused_result))

/* What happened, for a person. `msg` is one line, without a final newline. */
struct toc_error {
    enum toc_status status;
    const char *source; /* "mysql", "etcd", "kafka", "grpc"; static text */
    int native;         /* the library's own code, for the log only */
    char msg[240];
};

const char *toc_status_text(enum toc_status st);
bool toc_status_retryable(enum toc_status st);

/*
 * Fills *err when err is not NULL and returns st, so that an adapter can write
 * `return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", rc, "...", ...)`.
 */
__attribute__((format(printf, 5, 6))) enum toc_status toc_error_set(
    struct toc_error *err, enum toc_status st, const char *source, int native,
    const char *format, ...);

#endif

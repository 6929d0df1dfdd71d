/*
 * Between the model and the wire API (toc.v1): times, durations, states, etags
 * and whole tasks. What every service that speaks of tasks needs, so that a
 * task looks the same wherever it is read.
 *
 * Ownership: what is returned lives in the arena given and may borrow from it;
 * texts are copied. Threads: any; the arena's. Nothing here blocks. What comes
 * from the wire or the database is checked, never asserted.
 */
#ifndef TOC_API_API_H
#define TOC_API_API_H

#include "common/base/arena.h"
#include "common/model/task.h"
#include "toc/v1/types.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- times ---------------------------------------------------------- */

Google__Protobuf__Timestamp *toc_api_time(struct toc_arena *arena,
                                          int64_t wall_ms);
/* NULL (unset) for 0, which is how the model says "never". */
Google__Protobuf__Timestamp *toc_api_time_or_unset(struct toc_arena *arena,
                                                   int64_t wall_ms);
/* Rounded up: nothing fires early. False outside the years 0001 to 9999, or
 * with nanos outside [0, 999999999]. */
bool toc_api_time_ms(const Google__Protobuf__Timestamp *time,
                     int64_t *ret_wall_ms);
Google__Protobuf__Duration *toc_api_duration(struct toc_arena *arena,
                                             int64_t ms);
/* Rounded up. False beyond 10,000 years, with nanos out of range or of another
 * sign than the seconds. */
bool toc_api_duration_ms(const Google__Protobuf__Duration *duration,
                         int64_t *ret_ms);

/* ---- words ---------------------------------------------------------- */

Toc__V1__State toc_api_state(enum toc_state state);
/* False for UNSPECIFIED and numbers that are no state. */
bool toc_api_state_of(Toc__V1__State state, enum toc_state *ret_state);
Toc__V1__Priority toc_api_priority(enum toc_priority priority);
/* UNSPECIFIED is NORMAL; false for numbers that are no priority. */
bool toc_api_priority_of(Toc__V1__Priority priority,
                         enum toc_priority *ret_priority);
Toc__V1__AttemptResult toc_api_result(enum toc_result result);

/* The etag of a task in that version. */
char *toc_api_etag(struct toc_arena *arena, uint32_t version);
/* Empty or NULL: 0, which stands for any version. False: not an etag. */
bool toc_api_etag_parse(const char *etag, uint32_t *ret_version);

/* Well-formed UTF-8 without NUL, whatever the bytes were: protobuf refuses
 * anything else, and an error text cut in the middle of a character must not
 * make a task unreadable. */
char *toc_api_text(struct toc_arena *arena, struct toc_str s);

/* ---- tasks ---------------------------------------------------------- */

/* Names of processes by their number in the store. Unknown ones, or all when
 * fn is NULL, are shown as "#<number>". */
struct toc_api_names {
    const char *(*fn)(void *arg, uint32_t node_id); /* or NULL: not known */
    void *arg;
};

struct toc_api_view {
    int64_t now_ms;    /* for SCHEDULING */
    bool with_payload; /* lists leave it out */
    struct toc_api_names names;
};

/* A spec that cannot be read leaves its fields (target, policy, headers) out.
 */
Toc__V1__Task *toc_api_task(struct toc_arena *arena,
                            const struct toc_task *task,
                            const struct toc_api_view *view);
/* The latest attempt as the row tells it; NULL: never claimed. */
Toc__V1__Attempt *toc_api_last_attempt(struct toc_arena *arena,
                                       const struct toc_task *task,
                                       const struct toc_api_names *names);
/* The process's name; empty for 0. */
char *toc_api_node(struct toc_arena *arena, const struct toc_api_names *names,
                   uint32_t node_id);

#endif

/*
 * Says what is wrong with a request: each violation names the field's path, the
 * value (escaped and cut, so that it cannot forge a line) and the rule.
 *
 * Threads: the call's. Texts live in the failure's arena.
 */
#ifndef TOC_SCHEDULER_ACCESS_CHECK_H
#define TOC_SCHEDULER_ACCESS_CHECK_H

#include "common/base/str.h"
#include "common/rpc/rpc.h"

#include <stdbool.h>
#include <stdint.h>

#define SCHED_PATH_MAX 160

struct sched_check {
    struct toc_rpc_failure *failure;
    char path[SCHED_PATH_MAX]; /* of the message being checked: "items[3]." */
    size_t path_len;
};

/* prefix: "" or "items[3]." */
void sched_check_init(struct sched_check *check,
                      struct toc_rpc_failure *failure, const char *prefix);
/* Fields named from now on are inside this one; pop takes it back. */
__attribute__((format(printf, 2, 3))) size_t sched_check_push(
    struct sched_check *check, const char *format, ...);
void sched_check_pop(struct sched_check *check, size_t mark);

bool sched_check_ok(const struct sched_check *check);
/* "<value>: <rule>" for a text, "<value> <rule>" for a number. */
void sched_check_bad_text(struct sched_check *check, const char *field,
                          struct toc_str value, const char *rule);
void sched_check_bad_number(struct sched_check *check, const char *field,
                            int64_t value, const char *rule);
void sched_check_missing(struct sched_check *check, const char *field,
                         const char *rule);
/* Length in bytes; what the text may hold is checked on the wire (wire.h). */
bool sched_check_length(struct sched_check *check, const char *field,
                        struct toc_str value, size_t min, size_t max);
/* UNIMPLEMENTED, naming the field. */
void sched_check_unserved(struct sched_check *check, const char *field);
/* Printable, quoted, at most 48 characters of the value. In the arena. */
const char *sched_check_shown(struct toc_arena *arena, struct toc_str value);

#endif

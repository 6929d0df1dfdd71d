/*
 * One line per event: time, level, role, node, event, msg, then fields, as
 * key=value with values quoted and escaped where they need it (a value can
 * never start a line or a field of its own). Event names are stable and listed
 * in docs/EVENTS.md. Written to stderr in one write(2).
 *
 *     TOC_LOG(INFO, "lease.lost", F_MSG("lost the lease, giving up shards"),
 *             F_INT("shards", n), F_STR("hint", "check etcd"));
 *
 * Threads: any. Log or return an error, never both.
 */
#ifndef TOC_BASE_LOG_H
#define TOC_BASE_LOG_H

#include "common/base/status.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum toc_log_level {
    TOC_LOG_DEBUG,
    TOC_LOG_INFO,
    TOC_LOG_WARN,
    TOC_LOG_ERROR,
};

enum toc_field_kind { TOC_FIELD_STR, TOC_FIELD_INT, TOC_FIELD_UINT };

struct toc_field {
    const char *name;
    enum toc_field_kind kind;
    struct toc_str str;
    int64_t i;
    uint64_t u;
};

#define F_STR(key, text) \
    ((struct toc_field){ \
        .name = (key), .kind = TOC_FIELD_STR, .str = toc_str_of(text)})
#define F_SPAN(key, span) \
    ((struct toc_field){.name = (key), .kind = TOC_FIELD_STR, .str = (span)})
#define F_INT(key, value) \
    ((struct toc_field){  \
        .name = (key), .kind = TOC_FIELD_INT, .i = (int64_t)(value)})
#define F_UINT(key, value) \
    ((struct toc_field){   \
        .name = (key), .kind = TOC_FIELD_UINT, .u = (uint64_t)(value)})
#define F_MSG(text) F_STR("msg", text)
/* A struct toc_error's text. */
#define F_ERR(err) F_STR("error", (err)->msg)

#define TOC_LOG(level, event, ...)                             \
    do {                                                       \
        if (toc_log_on(TOC_LOG_##level)) {                     \
            const struct toc_field fields_[] = {__VA_ARGS__};  \
            toc_log_write(TOC_LOG_##level, event, fields_,     \
                          sizeof fields_ / sizeof fields_[0]); \
        }                                                      \
    } while (0)

/* Who speaks; both texts must outlive the process's logging. */
void toc_log_init(const char *role, const char *node, enum toc_log_level level);
bool toc_log_on(enum toc_log_level level);
void toc_log_write(enum toc_log_level level, const char *event,
                   const struct toc_field *fields, size_t n);
/* Takes events instead of stderr: what a simulated process says belongs into
 * the simulation's trace. Only while there is one thread; NULL: stderr again.
 */
typedef void toc_log_sink_fn(void *arg, enum toc_log_level level,
                             const char *event, const struct toc_field *fields,
                             size_t n);
void toc_log_use(toc_log_sink_fn *sink, void *arg);
/* "debug", "info", "warn", "error"; false for another text. */
bool toc_log_level_parse(struct toc_str s, enum toc_log_level *ret_level);

#endif

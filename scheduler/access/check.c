#include "scheduler/access/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 48

void
sched_check_init(struct sched_check *check, struct toc_rpc_failure *failure,
                 const char *prefix)
{
    check->failure = failure;
    toc_copy(check->path, sizeof check->path, toc_str_of(prefix));
    check->path_len = strlen(check->path);
}

size_t
sched_check_push(struct sched_check *check, const char *format, ...)
{
    size_t mark = check->path_len;
    size_t room = sizeof check->path - mark;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(check->path + mark, room, format, args);
    va_end(args);
    if (n > 0)
        check->path_len += (size_t)n < room ? (size_t)n : room - 1;
    return mark;
}

void
sched_check_pop(struct sched_check *check, size_t mark)
{
    check->path_len = mark;
    check->path[mark] = '\0';
}

bool
sched_check_ok(const struct sched_check *check)
{
    return check->failure->status == TOC_OK;
}

const char *
sched_check_shown(struct toc_arena *arena, struct toc_str value)
{
    static const char digits[] = "0123456789abcdef";
    char *out = toc_arena_alloc(arena, 4 * SHOWN_MAX + 8);
    char *at = out;
    size_t i;

    *at++ = '"';
    for (i = 0; i < value.len && at - out < SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            *at++ = (char)c;
            continue;
        }
        *at++ = '\\';
        *at++ = 'x';
        *at++ = digits[c >> 4];
        *at++ = digits[c & 15];
    }
    *at++ = '"';
    if (i < value.len) {
        memcpy(at, "...", 3);
        at += 3;
    }
    *at = '\0';
    return out;
}

static const char *
path_of(struct sched_check *check, const char *field)
{
    return toc_arena_printf(check->failure->arena, "%s%s", check->path, field);
}

void
sched_check_bad_text(struct sched_check *check, const char *field,
                     struct toc_str value, const char *rule)
{
    toc_rpc_violate(check->failure, path_of(check, field), "%s %s",
                    sched_check_shown(check->failure->arena, value), rule);
}

void
sched_check_bad_number(struct sched_check *check, const char *field,
                       int64_t value, const char *rule)
{
    toc_rpc_violate(check->failure, path_of(check, field), "%lld %s",
                    (long long)value, rule);
}

void
sched_check_missing(struct sched_check *check, const char *field,
                    const char *rule)
{
    toc_rpc_violate(check->failure, path_of(check, field), "%s", rule);
}

bool
sched_check_length(struct sched_check *check, const char *field,
                   struct toc_str value, size_t min, size_t max)
{
    const char *shown;

    if (value.len >= min && value.len <= max)
        return true;
    shown = sched_check_shown(check->failure->arena, value);
    if (value.len < min && min == 1)
        toc_rpc_violate(check->failure, path_of(check, field),
                        "must not be empty, 1 to %zu bytes", max);
    else
        toc_rpc_violate(check->failure, path_of(check, field),
                        "%s is %zu bytes long, must be %zu to %zu bytes", shown,
                        value.len, min, max);
    return false;
}

void
sched_check_unserved(struct sched_check *check, const char *field)
{
    struct toc_rpc_failure *failure = check->failure;

    /* More to the point than whatever else is wrong. */
    if (failure->status == TOC_UNIMPLEMENTED)
        return;
    failure->status = TOC_UNIMPLEMENTED;
    failure->message = toc_arena_printf(failure->arena, "%s is not served yet",
                                        path_of(check, field));
}

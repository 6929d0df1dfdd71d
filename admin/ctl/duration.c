#include "admin/ctl/text.h"

#include "common/clock/clock.h"

#include <string.h>

#define DURATION_MS_MAX INT64_C(315576000000000) /* 10,000 years */

static const struct {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", 86400000}, {"h", 3600000}, {"ms", 1}, {"m", 60000}, {"s", 1000},
};

static bool
take_unit(struct toc_str *s, int64_t *ret_ms)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        struct toc_str name = toc_str_of(units[i].name);
        if (toc_str_starts(*s, name)) {
            s->ptr += name.len;
            s->len -= name.len;
            *ret_ms = units[i].ms;
            return true;
        }
    }
    return false;
}

static bool
is_digit(struct toc_str s)
{
    return s.len > 0 && s.ptr[0] >= '0' && s.ptr[0] <= '9';
}

struct decimal {
    int64_t whole;
    int64_t fraction, scale; /* fraction / scale, up to 9 digits */
};

static bool
take_decimal(struct toc_str *s, struct decimal *out)
{
    size_t digits = 0;

    *out = (struct decimal){0, 0, 1};
    for (; is_digit(*s); s->ptr++, s->len--, digits++) {
        if (digits >= 15)
            return false;
        out->whole = out->whole * 10 + (s->ptr[0] - '0');
    }
    if (s->len == 0 || s->ptr[0] != '.')
        return digits > 0;
    s->ptr++;
    s->len--;
    if (!is_digit(*s))
        return false;
    for (; is_digit(*s); s->ptr++, s->len--) {
        if (out->scale >= 1000000000)
            return false;
        out->fraction = out->fraction * 10 + (s->ptr[0] - '0');
        out->scale *= 10;
    }
    return digits > 0;
}

bool
ctl_duration_parse(struct toc_str s, int64_t *ret_ms)
{
    int64_t total = 0, unit;
    struct decimal number;

    if (s.len == 0)
        return false;
    while (s.len > 0) {
        if (!take_decimal(&s, &number) || !take_unit(&s, &unit))
            return false;
        if (number.whole > DURATION_MS_MAX / unit)
            return false;
        /* Parts of a ms are rounded up, as everywhere. */
        total += number.whole * unit +
                 (number.fraction * unit + number.scale - 1) / number.scale;
        if (total > DURATION_MS_MAX)
            return false;
    }
    *ret_ms = total;
    return true;
}

static char *
two_units(struct toc_arena *arena, int64_t a, const char *unit_a, int64_t b,
          const char *unit_b)
{
    if (b == 0)
        return toc_arena_printf(arena, "%lld%s", (long long)a, unit_a);
    return toc_arena_printf(arena, "%lld%s%lld%s", (long long)a, unit_a,
                            (long long)b, unit_b);
}

char *
ctl_duration_text(struct toc_arena *arena, int64_t ms)
{
    int64_t s = ms / 1000;

    if (ms < 1000)
        return toc_arena_printf(arena, "%lldms", (long long)ms);
    if (s < 10 && ms % 1000 != 0)
        return two_units(arena, s, "s", ms % 1000, "ms");
    if (s < 60)
        return two_units(arena, s, "s", 0, "");
    if (s < 3600)
        return two_units(arena, s / 60, "m", s % 60, "s");
    if (s < 86400)
        return two_units(arena, s / 3600, "h", s / 60 % 60, "m");
    return two_units(arena, s / 86400, "d", s / 3600 % 24, "h");
}

char *
ctl_relative(struct toc_arena *arena, int64_t at_ms, int64_t now_ms)
{
    int64_t away = at_ms - now_ms;
    int64_t size = away < 0 ? -away : away;

    if (away == 0)
        return toc_arena_printf(arena, "now");
    if (size >= 1000) /* whole seconds are enough for a glance */
        size -= size % 1000;
    return toc_arena_printf(arena, away > 0 ? "in %s" : "%s ago",
                            ctl_duration_text(arena, size));
}

#include "common/base/log.h"

#include "common/base/os_time.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A line stays below PIPE_BUF, so that lines of several threads, or of several
 * processes behind one pipe, never mix. */
#define LINE_MAX_LEN 4096
#define VALUE_MAX_LEN 2048
#define CUT_MARK "..."
#define CUT_MARK_LEN (sizeof CUT_MARK - 1)
#define LINE_CUT " cut=true\n"

struct line {
    char text[LINE_MAX_LEN];
    size_t len;
    size_t max;
};

static _Atomic(const char *) log_role = "-";
static _Atomic(const char *) log_node = "-";
static _Atomic(enum toc_log_level) log_level = TOC_LOG_INFO;

static const char *const level_names[] = {
    [TOC_LOG_DEBUG] = "debug",
    [TOC_LOG_INFO] = "info",
    [TOC_LOG_WARN] = "warn",
    [TOC_LOG_ERROR] = "error",
};

void
toc_log_init(const char *role, const char *node, enum toc_log_level level)
{
    atomic_store(&log_role, role);
    atomic_store(&log_node, node);
    atomic_store(&log_level, level);
}

bool
toc_log_on(enum toc_log_level level)
{
    return level >= atomic_load_explicit(&log_level, memory_order_relaxed);
}

bool
toc_log_level_parse(struct toc_str s, enum toc_log_level *ret_level)
{
    for (int i = TOC_LOG_DEBUG; i <= TOC_LOG_ERROR; i++) {
        if (toc_str_eq(s, toc_str_of(level_names[i]))) {
            *ret_level = (enum toc_log_level)i;
            return true;
        }
    }
    return false;
}

static bool
add(struct line *line, const char *bytes, size_t len)
{
    if (len > line->max - line->len)
        return false;
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
    return true;
}

static bool
add_text(struct line *line, const char *text)
{
    return add(line, text, strlen(text));
}

static bool
is_control(struct toc_str s)
{
    return toc_str_has_control((struct toc_str){s.ptr, s.len < 2 ? s.len : 2});
}

static bool
needs_quotes(struct toc_str s)
{
    if (s.len == 0 || !toc_utf8_valid(s) || toc_str_has_control(s))
        return true;
    for (size_t i = 0; i < s.len; i++)
        if (strchr(" \"=\\", s.ptr[i]) != NULL)
            return true;
    return false;
}

/* Escapes the character at the front of s into out (at least 8 bytes); returns
 * how many bytes of s it was. */
static size_t
escape(struct toc_str s, char *out, size_t *ret_len)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = toc_utf8_len(s);
    struct toc_str one = {s.ptr, n};
    unsigned char c = (unsigned char)s.ptr[0];

    *ret_len = 2;
    out[0] = '\\';
    if (n == 1 && (c == '"' || c == '\\')) {
        out[1] = (char)c;
    } else if (c == '\n') {
        out[1] = 'n';
    } else if (c == '\r') {
        out[1] = 'r';
    } else if (c == '\t') {
        out[1] = 't';
    } else if (n == 0 || is_control(one)) {
        /* byte by byte: what follows a bad byte is looked at afresh, and the
         * second byte of U+0080 to U+009F is not well-formed alone */
        out[1] = 'x';
        out[2] = digits[c >> 4];
        out[3] = digits[c & 15];
        *ret_len = 4;
        n = 1;
    } else {
        memcpy(out, s.ptr, n);
        *ret_len = n;
    }
    return n > 0 ? n : 1;
}

/* False when the line is full. A value that is too long is cut and marked. */
static bool
add_value(struct line *line, struct toc_str s)
{
    bool quotes = needs_quotes(s);
    size_t limit = line->len + VALUE_MAX_LEN;

    if (quotes && !add(line, "\"", 1))
        return false;
    while (s.len > 0) {
        char out[8];
        size_t out_len;
        size_t n = escape(s, out, &out_len);
        if (line->len + out_len > limit - CUT_MARK_LEN)
            break;
        if (!add(line, out, out_len))
            return false;
        s.ptr += n;
        s.len -= n;
    }
    if (s.len > 0 && !add_text(line, CUT_MARK))
        return false;
    return !quotes || add(line, "\"", 1);
}

static bool
add_number(struct line *line, const struct toc_field *field)
{
    char digits[24];
    size_t len;

    if (field->kind == TOC_FIELD_INT)
        len = toc_format(digits, sizeof digits, "%lld", (long long)field->i);
    else
        len = toc_format(digits, sizeof digits, "%llu",
                         (unsigned long long)field->u);
    return add(line, digits, len);
}

/* All of the field or nothing. */
static bool
add_field(struct line *line, const struct toc_field *field)
{
    size_t before = line->len;
    bool done = add(line, " ", 1) && add_text(line, field->name) &&
                add(line, "=", 1) &&
                (field->kind == TOC_FIELD_STR ? add_value(line, field->str)
                                              : add_number(line, field));

    if (!done)
        line->len = before;
    return done;
}

static bool
add_head(struct line *line, enum toc_log_level level, const char *event)
{
    char now[TOC_TIME_TEXT_MAX];
    const struct toc_field head[] = {
        F_STR("level", level_names[level]),
        F_STR("role", atomic_load(&log_role)),
        F_STR("node", atomic_load(&log_node)),
        F_STR("event", event),
    };

    toc_time_format(now, toc_os_wall_ns() / 1000000);
    if (!add_text(line, "time=") || !add_text(line, now))
        return false;
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        if (!add_field(line, &head[i]))
            return false;
    return true;
}

static bool
add_fields(struct line *line, const struct toc_field *fields, size_t n)
{
    bool fits = true;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            bool is_msg = strcmp(fields[i].name, "msg") == 0;
            if (is_msg == (pass == 0))
                fits = add_field(line, &fields[i]) && fits;
        }
    }
    return fits;
}

/* A log that cannot be written has nobody to complain to. */
static void
write_line(const char *text, size_t len)
{
    int saved = errno;

    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        text += n;
        len -= (size_t)n;
    }
    errno = saved;
}

static toc_log_sink_fn *log_sink; /* NULL: stderr */
static void *log_sink_arg;

void
toc_log_use(toc_log_sink_fn *sink, void *arg)
{
    log_sink = sink;
    log_sink_arg = arg;
}

void
toc_log_write(enum toc_log_level level, const char *event,
              const struct toc_field *fields, size_t n)
{
    struct line line;
    bool fits;

    if (log_sink != NULL) {
        log_sink(log_sink_arg, level, event, fields, n);
        return;
    }
    line.len = 0;
    line.max = sizeof line.text - (sizeof LINE_CUT - 1);
    fits = add_head(&line, level, event) && add_fields(&line, fields, n);
    line.max = sizeof line.text;
    (void)add_text(&line, fits ? "\n" : LINE_CUT);
    write_line(line.text, line.len);
}
